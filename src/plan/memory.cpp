#include "plan/memory.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <ranges>
#include <utility>

#include "graph/geometry.hpp"

namespace mpi4dl {
namespace {

/// Bytes alive now and at the worst moment.
struct Meter {
  int64_t live = 0;
  int64_t peak = 0;
};

/// A piece of memory; freed with the last holder, as a tensor's storage is.
class Storage {
 public:
  Storage(Meter& meter, int64_t bytes) : meter_(meter), bytes_(bytes) {
    meter_.live += bytes_;
    meter_.peak = std::max(meter_.peak, meter_.live);
  }
  ~Storage() { meter_.live -= bytes_; }
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

 private:
  Meter& meter_;
  int64_t bytes_;
};

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
  PaperStep(const StagePlan& plan, int rank, int64_t element_size)
      : plan_(plan), rank_(rank), element_size_(element_size) {
    const size_t nodes = plan.graph().nodes().size();
    values_.resize(nodes);
    gradients_.resize(nodes);
    kept_.resize(nodes);
    readers_.resize(nodes, 0);
    read_by_.resize(nodes, 0);
    gone_back_.resize(nodes, 0);
    local_readers_.resize(nodes, 0);
    for (const int id : plan.nodes())
      for (const int from : plan.graph().node(id).inputs) {
        ++readers_[from];
        ++read_by_[from];
        if (!plan.reads_extended(from, id)) ++local_readers_[from];
      }
    for (const int id : plan.outputs()) ++readers_[id], ++local_readers_[id];
  }

  ActivationBytes run() {
    for (const int id : plan_.inputs()) values_[id].local = take(computed(id));
    for (const int id : plan_.nodes())
      if (!plan_.value(id).runs_in_reader) forward(id);
    values_.clear();
    values_.resize(plan_.graph().nodes().size());
    const int64_t kept = meter_.live;
    for (const int id : plan_.outputs()) gradients_[id].local = take(computed(id));
    for (const int id : std::views::reverse(plan_.nodes()))
      if (!plan_.value(id).runs_in_reader) backward(id);
    int64_t received = 0;
    for (const int id : plan_.inputs())
      if (!is_any<Input>(op(id))) received += computed(id).elements() * element_size_;
    return {kept, meter_.peak, 2 * received};
  }

 private:
  struct Pair {
    Held local, extended;
  };

  Held take(const Box& box) { return take_bytes(box.elements() * element_size_); }
  Held take_bytes(int64_t bytes) { return {std::make_shared<Storage>(meter_, bytes)}; }
  const Box& computed(int id) const { return plan_.value(id).computed[rank_]; }
  const Box& extended(int id) const { return plan_.value(id).extended[rank_]; }
  const Box& owned(int id) const { return plan_.value(id).owned[rank_]; }
  // A ReLU with a batch norm fused into it reads what the batch norm reads, and keeps that.
  const Operator& op(int id) const { return plan_.graph().node(plan_.work(id)).op; }
  const std::vector<int>& inputs(int id) const { return plan_.graph().node(plan_.work(id)).inputs; }
  bool reads_extended(int from, int id) const { return plan_.reads_extended(from, plan_.work(id)); }
  Box needed(int id, int input) const { return plan_.needed(plan_.work(id), input, rank_); }

  const Held& source(int id, int input) const {
    const int from = inputs(id)[input];
    return reads_extended(from, id) ? values_[from].extended : values_[from].local;
  }
  /// Where a value lies that is let go of after forward.
  const Box& remade_box(int id) const {
    return plan_.value(id).exchanged() ? plan_.value(id).room[rank_] : computed(id);
  }

  bool image(int id) const { return computed(id).axes() == 4; }

  int64_t parameter_bytes(int id) const {
    int64_t elements = 0;
    for (const Parameter& parameter : plan_.graph().node(plan_.work(id)).parameters)
      if (parameter.trainable) elements += parameter.elements();
    return elements * element_size_;
  }
  /// Elements of a window operator's input with its padding.
  int64_t padded_elements(int id) const {
    const Box box = needed(id, 0);
    int64_t elements = box[0].length() * box[1].length();
    const int spatial = box.axes() - 2;
    for (int axis = 0; axis < spatial; ++axis)
      elements *= windows(op(id), spatial)[axis].need(computed(id)[axis + 2]).length();
    return elements;
  }
  bool padded(int id) const { return padded_elements(id) != needed(id, 0).elements(); }
  /// A convolution leaves padding to libtorch where it is the same on both sides.
  bool symmetric(int id) const {
    const Box box = needed(id, 0);
    const auto wins = windows(op(id), box.axes() - 2);
    for (int axis = 2; axis < box.axes(); ++axis) {
      const Interval need = wins[axis - 2].need(computed(id)[axis]);
      if (box[axis].begin - need.begin != need.end - box[axis].end) return false;
    }
    return true;
  }

  void forward(int id) {
    const bool in_room = plan_.value(id).computed_in_room(rank_);
    if (in_room) values_[id].extended = take(plan_.value(id).room[rank_]);
    if (!computed(id).empty()) values_[id].local = compute(id, values_[id].extended);
    if (plan_.value(id).exchanged()) {
      if (!in_room) values_[id].extended = take(plan_.value(id).room[rank_]);
      if (local_readers_[id] == 0) values_[id].local = {};
    }
    for (const int from : inputs(id)) {
      if (--readers_[from] > 0) continue;
      values_[from] = {};
      if (plan_.runs(from) && plan_.remade(from, rank_))  // its margins stay
        margins_[from] =
            take_bytes((remade_box(from).elements() - computed(from).elements()) * element_size_);
    }
  }

  /// `room`: where the output goes, if there is one; ReLU and batch norm write into it, others are
  /// copied.
  Held compute(int id, const Held& room) {
    const Operator& what = op(id);
    if (is_any<Identity>(what)) return source(id, 0);
    if (is_any<Convolution, MaxPool>(what)) {
      const int from = inputs(id)[0];
      const bool framed = reads_extended(from, id) || symmetric(id);
      const bool copy = padded(id) && !(is_any<Convolution>(what) && framed);
      if (copy) {
        kept_[id].push_back(take_bytes(padded_elements(id) * element_size_));
      } else if (!plan_.runs(from) || !plan_.remade(from, rank_)) {
        kept_[id].push_back(source(id, 0));
      }
      if (is_any<MaxPool>(what))
        kept_[id].push_back(
            take_bytes(computed(id).elements() * static_cast<int64_t>(sizeof(int64_t))));
      return take(computed(id));
    }
    if (is_any<AvgPool>(what) && image(id)) return take(computed(id));
    if (is_any<AvgPool>(what)) {
      const Held copy = take_bytes(padded(id) ? padded_elements(id) * element_size_ : 0);
      const Held sums = take(computed(id));
      return take(computed(id));
    }
    if (is_any<BatchNorm, GroupNorm, Linear, TransposedConvolution, Upsample>(what))
      kept_[id].push_back(source(id, 0));
    Held output = room && is_any<Relu, BatchNorm>(what) ? room : take(computed(id));
    if (is_any<Relu>(what)) kept_[id].push_back(output);
    if (is_any<Dropout>(what)) kept_[id].push_back(take(computed(id)));
    return output;
  }

  void backward(int id) {
    Held gradient = complete_gradient(id);
    gradients_[id] = {};
    if (computed(id).empty()) return;
    for (const int from : inputs(id))
      if (margins_.erase(from) > 0) remade_[from] = take(remade_box(from));
    // libtorch makes the gradient of a convolution's weights by way of two others of its size.
    const Held parameter_gradients =
        take_bytes(parameter_bytes(id) * (is_any<Convolution>(op(id)) ? 3 : 1));
    std::vector<Held> results = differentiate(id, std::move(gradient));
    kept_[id].clear();
    for (const int from : inputs(id))
      if (++gone_back_[from] == read_by_[from]) remade_.erase(from);
    for (size_t i = 0; i < inputs(id).size(); ++i)
      add(id, static_cast<int>(i), std::move(results[i]));
  }

  Held complete_gradient(int id) {
    Pair& here = gradients_[id];
    const bool returns = plan_.value(id).exchanged();
    if (returns && !here.local && here.extended && here.extended.sole() &&
        computed(id) == owned(id) && extended(id).contains(owned(id))) {
      here.local = {here.extended.storage, here.extended.gaps || extended(id) != owned(id)};
      here.extended = {};
    } else if (returns) {
      Held returned = take(owned(id));
      if (!here.extended) here.extended = take(extended(id));
      accumulate(here.local, computed(id), owned(id), std::move(returned));
    }
    if (!here.local) here.local = take(computed(id));
    return std::move(here.local);
  }

  std::vector<Held> differentiate(int id, Held gradient) {
    const Operator& what = op(id);
    if (is_any<Add, Concat, Identity>(what)) return std::vector<Held>(inputs(id).size(), gradient);
    if (is_any<Convolution, MaxPool>(what)) {
      const Held dense = take_bytes(gradient.gaps ? computed(id).elements() * element_size_ : 0);
      if (is_any<Convolution>(what) && symmetric(id)) return {take(needed(id, 0))};
      return {{take_bytes(padded_elements(id) * element_size_).storage, padded(id)}};
    }
    if (is_any<AvgPool>(what) && image(id)) {
      const int64_t spread = computed(id).elements() / computed(id)[3].length() *
                             needed(id, 0)[3].length() * element_size_;
      const Held along_rows = take_bytes(spread);
      return {take(needed(id, 0))};
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
    return {take(needed(id, 0))};
  }

  void add(int id, int input, Held gradient) {
    const int from = inputs(id)[input];
    const Box box = needed(id, input);
    if (box.empty()) return;
    if (reads_extended(from, id)) {
      accumulate(gradients_[from].extended, extended(from), box, std::move(gradient));
    } else {
      accumulate(gradients_[from].local, computed(from), box, std::move(gradient));
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
  Meter meter_;
  std::vector<Pair> values_, gradients_;
  std::vector<std::vector<Held>> kept_;
  std::map<int, Held> margins_, remade_;  // by node
  std::vector<int> readers_, local_readers_, read_by_, gone_back_;
};

}  // namespace

ActivationBytes activation_bytes(const StagePlan& plan, int rank, int64_t element_size) {
  return PaperStep(plan, rank, element_size).run();
}

}  // namespace mpi4dl
