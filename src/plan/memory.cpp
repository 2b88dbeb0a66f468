#include "plan/memory.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <ranges>
#include <set>
#include <utility>

#include "plan/segments.hpp"
#include "plan/storage_meter.hpp"

namespace mpi4dl {
namespace {

/// Held is one reference to a storage, or to a part of it with gaps between its rows.
struct Held {
  std::shared_ptr<Storage> storage;
  bool gaps = false;

  explicit operator bool() const { return storage != nullptr; }
  bool sole() const { return storage.use_count() == 1; }
};

class MemoryModel {
 public:
  MemoryModel(const StagePlan& plan, int rank, int64_t element_size,
              const std::vector<CellRange>& recomputed, Kernels kernels)
      : plan_(plan),
        rank_(rank),
        element_size_(element_size),
        kernels_(kernels),
        recompute_(!recomputed.empty()),
        segments_(plan, recompute_ ? recomputed : std::vector{plan.cells()}) {
    const size_t nodes = plan.graph().nodes().size();
    values_.resize(nodes);
    gradients_.resize(nodes);
    kept_.resize(nodes);
    finished_consumers_.resize(nodes, 0);
    for (const Readers& readers : segments_.readers) readers_.push_back(readers.all);
    if (recompute_)
      for (const Segment& segment : segments_.list)
        for (const int id : segment.first_reads) ++readers_[id];
  }

  ActivationBytes run() {
    run_forward();
    for (const int id : plan_.outputs()) gradients_[id].local = take(computed(id));
    for (const Segment& segment : std::views::reverse(segments_.list)) {
      if (recompute_) recompute(segment);
      for (const int id : std::views::reverse(segment.nodes))
        if (!plan_.value(id).fused_into_consumer) {
          backward(id);
          take_bytes(formula_bytes(id));  // and frees them
        }
      if (recompute_)
        for (const int id : segment.first_reads) count_reading(id);
    }
    int64_t received = 0, sent = 0;
    for (const int id : plan_.inputs())
      if (!std::holds_alternative<Input>(op(id)))
        received += computed(id).elements() * element_size_;
    for (const int id : plan_.outputs()) sent += owned(id).elements() * element_size_;
    return {.kept = kept_by_cell_.back(),
            .peak = meters_.all.peak,
            .reserved = meters_.ordinary.peak + meters_.shared.peak,
            .in_transit = 2 * received + sent};
  }

  /// Returns what is kept after the forward of each cell, for backward and for later cells.
  const std::vector<int64_t>& run_forward() {
    for (const int id : plan_.inputs()) values_[id].local = take(computed(id));
    int cell = plan_.cells().first;
    for (const int id : plan_.nodes()) {
      for (; cell < plan_.graph().node(id).cell; ++cell) kept_by_cell_.push_back(meters_.all.live);
      if (plan_.value(id).fused_into_consumer) continue;
      keeps_ = !recompute_;
      forward(id, segments_.readers[id]);
      for (const Edge& edge : reads(id)) count_reading(edge.from);
    }
    for (const int id : plan_.outputs()) count_reading(id);
    kept_by_cell_.resize(plan_.cells().last - plan_.cells().first, meters_.all.live);
    return kept_by_cell_;
  }

 private:
  struct Pair {
    Held local, extended;
  };

  Held take(const Box& box) { return take_bytes(box.elements() * element_size_); }
  Held take_bytes(int64_t bytes) {
    return {std::make_shared<Storage>(meters_.all, meters_.ordinary, bytes)};
  }
  Held take_shared(const Box& box) {
    return {std::make_shared<Storage>(meters_.all, meters_.shared, box.elements() * element_size_)};
  }
  const Box& computed(int id) const { return plan_.value(id).computed[rank_]; }
  const Box& extended(int id) const { return plan_.value(id).extended[rank_]; }
  const Box& owned(int id) const { return plan_.value(id).owned[rank_]; }
  /// Returns the operator that a fused group begins with.
  const Operator& op(int id) const { return plan_.graph().node(plan_.anchor(id)).op; }
  const std::vector<Edge>& reads(int id) const { return plan_.value(id).reads; }
  bool has_residual(int id) const { return reads(id).back().reader != plan_.anchor(id); }
  bool reads_extended(const Edge& edge) const {
    return plan_.reads_extended(edge.from, edge.reader);
  }
  Box needed(const Edge& edge) const { return plan_.needed(edge.reader, edge.input, rank_); }
  Box needed(int id) const { return needed(reads(id)[0]); }

  const Held& source(const Edge& edge) const {
    return reads_extended(edge) ? values_[edge.from].extended : values_[edge.from].local;
  }
  /// Returns the box of a value that is released after forward.
  const Box& rematerialised_box(int id) const {
    return plan_.value(id).exchanged() ? plan_.value(id).padded[rank_] : computed(id);
  }

  /// Counts what is kept of it: its margins inside the image.
  int64_t margin_elements(int id) const {
    const Box image = Box::whole(plan_.full_shape(id));
    return intersect(rematerialised_box(id), image).elements() - computed(id).elements();
  }

  int64_t parameter_bytes(int id, bool frozen_too) const {
    int64_t elements = 0;
    for (const auto& [parameter, formula] : plan_.graph().node(plan_.anchor(id)).weights)
      if (parameter.trained() || (frozen_too && !parameter.statistic()))
        elements += parameter.elements();
    return elements * element_size_;
  }

  /// Returns what the way back through the formulas of a node takes, each alone: everything on the
  /// way, and the gradients of two steps.
  int64_t formula_bytes(int id) const {
    int64_t most = 0;
    for (const auto& [parameter, formula] : plan_.graph().node(plan_.anchor(id)).weights)
      if (formula && parameter.trained())
        most = std::max(most, elements_on_the_way(*formula) + 2 * parameter.elements());
    return most * std::max<int64_t>(element_size_, sizeof(float));
  }

  TilePlacement placement(int id) const {
    return {.needed = needed(id),
            .computed = computed(id),
            .owned = owned(id),
            .element_size = element_size_,
            .weight_bytes = parameter_bytes(id, /*frozen_too=*/true),
            .parameter_bytes = parameter_bytes(id, /*frozen_too=*/false),
            .framed = reads_extended(reads(id)[0]),
            .composed = kernels_ == Kernels::composed};
  }

  void recompute(const Segment& segment) {
    keeps_ = true;
    for (const int id : segment.nodes) readers_[id] = segments_.inside[id].all;
    for (const int id : segment.nodes) {
      if (plan_.value(id).fused_into_consumer) continue;
      forward(id, segments_.inside[id]);
      if (segments_.inside[id].all == 0) values_[id] = {};
      for (const Edge& edge : reads(id))
        if (segments_.together(edge.from, id)) count_reading(edge.from);
    }
  }

  void forward(int id, const Readers& readers) {
    const bool in_halo_buffer = plan_.value(id).computed_in_halo_buffer(rank_);
    if (in_halo_buffer) values_[id].extended = take_shared(plan_.value(id).padded[rank_]);
    if (!computed(id).empty()) values_[id].local = compute(id, values_[id].extended);
    if (keeps_ && readers.all > 0 && plan_.rematerialised(id, rank_)) rematerialisers_.insert(id);
    if (readers.extended == 0) return;
    if (!in_halo_buffer) values_[id].extended = take_shared(plan_.value(id).padded[rank_]);
    if (readers.local == 0) values_[id].local = {};
  }

  void count_reading(int id) {
    if (--readers_[id] > 0) return;
    values_[id] = {};
    if (rematerialisers_.erase(id) > 0)
      margins_[id] = take_bytes(margin_elements(id) * element_size_);
  }

  void keep(int id, Held what) {
    if (keeps_) kept_[id].push_back(std::move(what));
  }

  /// Returns the output, which may go into the halo buffer, if there is one.
  Held compute(int id, const Held& halo_buffer) {
    const ForwardMemory memory = forward_memory(op(id), placement(id));
    if (memory.output == ForwardMemory::Output::input) return source(reads(id)[0]);
    for (const Edge& edge : reads(id))
      if (memory.keeps_input && edge.reader == plan_.anchor(id) &&
          (!plan_.runs(edge.from) || !plan_.rematerialised(edge.from, rank_)))
        keep(id, source(edge));
    if (memory.kept_bytes > 0) keep(id, take_bytes(memory.kept_bytes));
    const Held workspace = take_bytes(memory.workspace_bytes);
    const bool in_place = halo_buffer && memory.output == ForwardMemory::Output::halo_buffer;
    Held output = in_place ? halo_buffer : take(computed(id));
    if (memory.keeps_output || (has_residual(id) && plan_.ends_with_relu(id))) keep(id, output);
    return output;
  }

  void backward(int id) {
    Held gradient = complete_gradient(id);
    gradients_[id] = {};
    if (computed(id).empty()) return;
    for (const Edge& edge : reads(id))
      if (margins_.erase(edge.from) > 0)
        rematerialised_[edge.from] = take(rematerialised_box(edge.from));
    const BackwardMemory memory = backward_memory(op(id), placement(id));
    const Held copies_of_parameters = take_bytes(memory.parameter_bytes);
    if (memory.input_last) release(id);
    std::vector<Held> results = differentiate(id, memory, std::move(gradient));
    if (!memory.input_last) release(id);
    for (size_t i = 0; i < reads(id).size(); ++i) add(reads(id)[i], std::move(results[i]));
  }

  /// Releases what was kept for this node's backward.
  void release(int id) {
    kept_[id].clear();
    for (const Edge& edge : reads(id))
      if (++finished_consumers_[edge.from] == segments_.readers[edge.from].all)
        rematerialised_.erase(edge.from);
  }

  Held complete_gradient(int id) {
    Pair& here = gradients_[id];
    const bool returns = plan_.value(id).exchanged();
    if (returns && !here.local && here.extended && here.extended.sole() &&
        computed(id) == owned(id) && extended(id).contains(owned(id))) {
      here.local = {here.extended.storage, here.extended.gaps || extended(id) != owned(id)};
      here.extended = {};
    } else if (returns) {
      Held returned = take_shared(owned(id));
      if (!here.extended) here.extended = take_shared(extended(id));
      accumulate(here.local, computed(id), owned(id), std::move(returned));
    }
    if (!here.local) here.local = take(computed(id));
    return std::move(here.local);
  }

  std::vector<Held> differentiate(int id, const BackwardMemory& memory, Held gradient) {
    if (!has_residual(id)) return differentiate_anchor(id, memory, std::move(gradient));
    if (plan_.ends_with_relu(id)) gradient = take(computed(id));
    std::vector<Held> results = differentiate_anchor(id, memory, Held(gradient));
    results.push_back(std::move(gradient));
    return results;
  }

  /// Returns the gradients of what the first operator of a fused group reads.
  std::vector<Held> differentiate_anchor(int id, const BackwardMemory& memory, Held gradient) {
    using Input = BackwardMemory::Input;
    if (memory.input == Input::gradient) return std::vector<Held>(reads(id).size(), gradient);
    if (memory.input == Input::in_place && gradient.sole() && !gradient.gaps)
      return {std::move(gradient)};
    const bool copies = memory.wants_dense && gradient.gaps;
    const Held dense = take_bytes(copies ? computed(id).elements() * element_size_ : 0);
    const Held workspace = take_bytes(memory.workspace_bytes);
    std::vector<Held> results{{take_bytes(memory.input_bytes).storage, memory.gaps}};
    for (const Edge& edge : reads(id))
      if (edge.reader == plan_.anchor(id) && edge.input > 0) results.push_back(take(needed(edge)));
    return results;
  }

  void add(const Edge& edge, Held gradient) {
    const Box box = needed(edge);
    if (box.empty()) return;
    Pair& sums = gradients_[edge.from];
    if (reads_extended(edge)) {
      accumulate(sums.extended, extended(edge.from), box, std::move(gradient));
    } else {
      accumulate(sums.local, computed(edge.from), box, std::move(gradient));
    }
  }

  void accumulate(Held& sum, const Box& whole, const Box& part, Held gradient) {
    if (part.empty() || (sum && sum.sole())) return;
    if (part == whole && (!sum || gradient.sole())) {
      sum = std::move(gradient);
    } else {
      sum = take(whole);
    }
  }

  const StagePlan& plan_;
  int rank_;
  int64_t element_size_;
  Kernels kernels_;
  bool recompute_;
  Segments segments_;
  bool keeps_ = true;  // what is run now, for its backward
  Meters meters_;
  std::vector<int64_t> kept_by_cell_;
  std::vector<Pair> values_, gradients_;
  std::vector<std::vector<Held>> kept_;
  std::set<int> rematerialisers_;                 // nodes whose values will be rematerialised
  std::map<int, Held> margins_, rematerialised_;  // by node
  std::vector<int> readers_, finished_consumers_;
};

}  // namespace

ActivationBytes activation_bytes(const StagePlan& plan, int rank, int64_t element_size,
                                 const std::vector<CellRange>& recomputed, Kernels kernels) {
  return MemoryModel(plan, rank, element_size, recomputed, kernels).run();
}

std::vector<int64_t> kept_by_cell(const StagePlan& plan, int rank, int64_t element_size,
                                  const std::vector<CellRange>& recomputed) {
  return MemoryModel(plan, rank, element_size, recomputed, Kernels::own).run_forward();
}

}  // namespace mpi4dl
