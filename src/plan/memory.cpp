#include "plan/memory.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <ranges>
#include <set>
#include <utility>

#include "graph/geometry.hpp"
#include "ops/kernels/cache_bytes.hpp"
#include "plan/segments.hpp"
#include "plan/storage_meter.hpp"

namespace mpi4dl {
namespace {

/// One holder of a storage, or of a part of it with gaps between its rows.
struct Held {
  std::shared_ptr<Storage> storage;
  bool gaps = false;

  explicit operator bool() const { return storage != nullptr; }
  bool sole() const { return storage.use_count() == 1; }
};

template <typename... Ops>
bool is_any(const Operator& op) {
  return (std::holds_alternative<Ops>(op) || ...);
}

class PaperStep {
 public:
  PaperStep(const StagePlan& plan, int rank, int64_t element_size,
            const std::vector<CellRange>& recomputed)
      : plan_(plan),
        rank_(rank),
        element_size_(element_size),
        recompute_(!recomputed.empty()),
        segments_(plan, recompute_ ? recomputed : std::vector{plan.cells()}) {
    const size_t nodes = plan.graph().nodes().size();
    values_.resize(nodes);
    gradients_.resize(nodes);
    kept_.resize(nodes);
    gone_back_.resize(nodes, 0);
    for (const Readers& readers : segments_.readers) readers_.push_back(readers.all);
    if (recompute_)
      for (const Segment& segment : segments_.list)
        for (const int id : segment.first_reads) ++readers_[id];
  }

  ActivationBytes run() {
    go_forward();
    for (const int id : plan_.outputs()) gradients_[id].local = take(computed(id));
    for (const Segment& segment : std::views::reverse(segments_.list)) {
      if (recompute_) run_again(segment);
      for (const int id : std::views::reverse(segment.nodes))
        if (!plan_.value(id).runs_in_reader) backward(id);
      if (recompute_)
        for (const int id : segment.first_reads) count_reading(id);
    }
    int64_t received = 0, sent = 0;
    for (const int id : plan_.inputs())
      if (!is_any<Input>(op(id))) received += computed(id).elements() * element_size_;
    for (const int id : plan_.outputs()) sent += owned(id).elements() * element_size_;
    return {.kept = kept_by_cell_.back(),
            .peak = meters_.all.peak,
            .reserved = meters_.ordinary.peak + meters_.shared.peak,
            .in_transit = 2 * received + sent};
  }

  /// What is kept after the forward of each cell, for backward and for later cells.
  const std::vector<int64_t>& go_forward() {
    for (const int id : plan_.inputs()) values_[id].local = take(computed(id));
    int cell = plan_.cells().first;
    for (const int id : plan_.nodes()) {
      for (; cell < plan_.graph().node(id).cell; ++cell) kept_by_cell_.push_back(meters_.all.live);
      if (plan_.value(id).runs_in_reader) continue;
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
  /// The operator that a pass begins with, and what its end adds to that.
  const Operator& op(int id) const { return plan_.graph().node(plan_.work(id)).op; }
  const std::vector<Edge>& reads(int id) const { return plan_.value(id).reads; }
  bool sums(int id) const { return reads(id).back().reader != plan_.work(id); }
  bool reads_extended(const Edge& edge) const {
    return plan_.reads_extended(edge.from, edge.reader);
  }
  Box needed(const Edge& edge) const { return plan_.needed(edge.reader, edge.input, rank_); }
  Box needed(int id) const { return needed(reads(id)[0]); }

  const Held& source(int id) const {
    const Edge& edge = reads(id)[0];
    return reads_extended(edge) ? values_[edge.from].extended : values_[edge.from].local;
  }
  /// Where a value lies that is let go of after forward.
  const Box& remade_box(int id) const {
    return plan_.value(id).exchanged() ? plan_.value(id).room[rank_] : computed(id);
  }

  /// What is kept of it: its margins inside the image.
  int64_t margin_elements(int id) const {
    const Box image = Box::whole(plan_.full_shape(id));
    return intersect(remade_box(id), image).elements() - computed(id).elements();
  }

  bool image(int id) const { return computed(id).axes() == 4; }
  /// The kernels for images need neither padding nor gradients without gaps.
  bool image_convolution(int id) const {
    const auto* convolution = std::get_if<Convolution>(&op(id));
    return convolution != nullptr && image(id) && convolution->groups == 1;
  }

  int64_t parameter_bytes(int id) const {
    int64_t elements = 0;
    for (const Parameter& parameter : plan_.graph().node(plan_.work(id)).parameters)
      if (parameter.trainable) elements += parameter.elements();
    return elements * element_size_;
  }
  /// Elements of a window operator's input with its padding.
  int64_t padded_elements(int id) const {
    const Box box = needed(id);
    int64_t elements = box[0].length() * box[1].length();
    const int spatial = box.axes() - 2;
    for (int axis = 0; axis < spatial; ++axis)
      elements *= windows(op(id), spatial)[axis].need(computed(id)[axis + 2]).length();
    return elements;
  }
  bool padded(int id) const { return padded_elements(id) != needed(id).elements(); }
  /// A convolution leaves padding to libtorch where it is the same on both sides.
  bool symmetric(int id) const {
    const Box box = needed(id);
    const auto wins = windows(op(id), box.axes() - 2);
    for (int axis = 2; axis < box.axes(); ++axis) {
      const Interval need = wins[axis - 2].need(computed(id)[axis]);
      if (box[axis].begin - need.begin != need.end - box[axis].end) return false;
    }
    return true;
  }

  void run_again(const Segment& segment) {
    keeps_ = true;
    for (const int id : segment.nodes) readers_[id] = segments_.inside[id].all;
    for (const int id : segment.nodes) {
      if (plan_.value(id).runs_in_reader) continue;
      forward(id, segments_.inside[id]);
      if (segments_.inside[id].all == 0) values_[id] = {};
      for (const Edge& edge : reads(id))
        if (segments_.together(edge.from, id)) count_reading(edge.from);
    }
  }

  void forward(int id, const Readers& readers) {
    const bool in_room = plan_.value(id).computed_in_room(rank_);
    if (in_room) values_[id].extended = take_shared(plan_.value(id).room[rank_]);
    if (!computed(id).empty()) values_[id].local = compute(id, values_[id].extended);
    if (keeps_ && readers.all > 0 && plan_.remade(id, rank_)) makers_.insert(id);
    if (readers.extended == 0) return;
    if (!in_room) values_[id].extended = take_shared(plan_.value(id).room[rank_]);
    if (readers.local == 0) values_[id].local = {};
  }

  void count_reading(int id) {
    if (--readers_[id] > 0) return;
    values_[id] = {};
    if (makers_.erase(id) > 0) margins_[id] = take_bytes(margin_elements(id) * element_size_);
  }

  void keep(int id, Held what) {
    if (keeps_) kept_[id].push_back(std::move(what));
  }

  /// `room`: where the output goes, if there is one; our own kernels write into it, others are
  /// copied.
  Held compute(int id, const Held& room) {
    const Operator& what = op(id);
    if (is_any<Identity>(what)) return source(id);
    if (image_convolution(id)) {
      if (const int from = reads(id)[0].from; !plan_.runs(from) || !plan_.remade(from, rank_))
        keep(id, source(id));
      const Held packed_weights = take_bytes(packed_bytes(id));
      return room ? room : take(computed(id));
    }
    if (is_any<Convolution, MaxPool>(what)) {
      const int from = reads(id)[0].from;
      const bool framed = reads_extended(reads(id)[0]) || symmetric(id);
      const bool copy = padded(id) && !(is_any<Convolution>(what) && framed);
      if (copy) {
        keep(id, take_bytes(padded_elements(id) * element_size_));
      } else if (!plan_.runs(from) || !plan_.remade(from, rank_)) {
        keep(id, source(id));
      }
      if (is_any<MaxPool>(what))
        keep(id, take_bytes(computed(id).elements() * static_cast<int64_t>(sizeof(int64_t))));
      return take(computed(id));
    }
    if (is_any<AvgPool>(what) && image(id)) return take(computed(id));
    if (is_any<AvgPool>(what)) {
      const Held copy = take_bytes(padded(id) ? padded_elements(id) * element_size_ : 0);
      const Held sums = take(computed(id));
      return take(computed(id));
    }
    if (is_any<BatchNorm, GroupNorm, Linear, TransposedConvolution, Upsample>(what))
      keep(id, source(id));
    Held output = room && is_any<Relu, BatchNorm>(what) ? room : take(computed(id));
    if (is_any<Relu>(what) || (sums(id) && plan_.ends_with_relu(id))) keep(id, output);
    if (is_any<Dropout>(what)) keep(id, take(computed(id)));
    return output;
  }

  void backward(int id) {
    Held gradient = complete_gradient(id);
    gradients_[id] = {};
    if (computed(id).empty()) return;
    for (const Edge& edge : reads(id))
      if (margins_.erase(edge.from) > 0) remade_[edge.from] = take(remade_box(edge.from));
    const Held copies_of_parameters = take_bytes(parameter_copies(id));
    if (image_convolution(id)) release(id);  // the gradient of the input comes last
    std::vector<Held> results = differentiate(id, std::move(gradient));
    if (!image_convolution(id)) release(id);
    for (size_t i = 0; i < reads(id).size(); ++i) add(reads(id)[i], std::move(results[i]));
  }

  /// Gradients before they are added to others'. Of a convolution's weights libtorch makes two more
  /// copies on the way; our kernels add where the sum is, but pack the weights.
  int64_t parameter_copies(int id) const {
    if (image_convolution(id)) return packed_bytes(id);
    return parameter_bytes(id) * (is_any<Convolution>(op(id)) ? 3 : 1);
  }

  int64_t packed_bytes(int id) const { return std::min(parameter_bytes(id), kPackedBytes); }

  /// What was kept for this node's backward.
  void release(int id) {
    kept_[id].clear();
    for (const Edge& edge : reads(id))
      if (++gone_back_[edge.from] == segments_.readers[edge.from].all) remade_.erase(edge.from);
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

  std::vector<Held> differentiate(int id, Held gradient) {
    if (!sums(id)) return differentiate_work(id, std::move(gradient));
    if (plan_.ends_with_relu(id)) gradient = take(computed(id));
    std::vector<Held> results = differentiate_work(id, Held(gradient));
    results.push_back(std::move(gradient));
    return results;
  }

  std::vector<Held> differentiate_work(int id, Held gradient) {
    const Operator& what = op(id);
    if (is_any<Add, Concat, Identity>(what)) return std::vector<Held>(reads(id).size(), gradient);
    if (image_convolution(id)) return {take(needed(id))};
    if (is_any<Convolution, MaxPool>(what)) {
      const Held dense = take_bytes(gradient.gaps ? computed(id).elements() * element_size_ : 0);
      if (is_any<Convolution>(what) && symmetric(id)) return {take(needed(id))};
      return {{take_bytes(padded_elements(id) * element_size_).storage, padded(id)}};
    }
    if (is_any<AvgPool>(what) && image(id)) {
      const int64_t spread = computed(id).elements() / computed(id)[3].length() *
                             needed(id)[3].length() * element_size_;
      const Held along_rows = take_bytes(spread);
      return {take(needed(id))};
    }
    if (is_any<AvgPool>(what)) {
      const Held share = take(computed(id));
      const Held like = take_bytes(padded_elements(id) * element_size_);
      return {{take_bytes(padded_elements(id) * element_size_).storage, padded(id)}};
    }
    if (is_any<BatchNorm>(what)) {
      if (gradient.sole() && !gradient.gaps) return {std::move(gradient)};
      return {take(computed(id))};
    }
    if (is_any<GroupNorm>(what)) {
      const Held normalised = take(computed(id));
      Held result = take(computed(id));
      const Held correction = take(owned(id));
      return {result};
    }
    if (is_any<GlobalAvgPool>(what)) return {take(computed(id))};  // expanded without memory
    return {take(needed(id))};
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
  bool recompute_;
  Segments segments_;
  bool keeps_ = true;  // what is run now, for its backward
  Meters meters_;
  std::vector<int64_t> kept_by_cell_;
  std::vector<Pair> values_, gradients_;
  std::vector<std::vector<Held>> kept_;
  std::set<int> makers_;                  // nodes whose values will be made again
  std::map<int, Held> margins_, remade_;  // by node
  std::vector<int> readers_, gone_back_;
};

}  // namespace

ActivationBytes activation_bytes(const StagePlan& plan, int rank, int64_t element_size,
                                 const std::vector<CellRange>& recomputed) {
  return PaperStep(plan, rank, element_size, recomputed).run();
}

std::vector<int64_t> kept_by_cell(const StagePlan& plan, int rank, int64_t element_size,
                                  const std::vector<CellRange>& recomputed) {
  return PaperStep(plan, rank, element_size, recomputed).go_forward();
}

}  // namespace mpi4dl
