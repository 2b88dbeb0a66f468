// The kernels of convolutions against oneDNN, called directly and through libtorch, on one thread:
// the convolutions of ResNet-110 and AmoebaNet-D (6 layers, 64 filters) at 256², and depthwise and
// grouped ones, one channels-last image, in float32 or bfloat16. They alternate; prints GFLOP/s of
// each, and what all convolutions of a model take. Medians of processor time, so that others on the
// machine disturb little.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "backend/cpu/convolution.hpp"
#include "base/error.hpp"
#include "base/instruction_set.hpp"
#include "base/median.hpp"

#ifdef MPI4DL_ONEDNN
#include <oneapi/dnnl/dnnl.hpp>
#endif

namespace {

using namespace mpi4dl;

constexpr int kRounds = 7;

/// Is a convolution with padding of half its kernel, and says how often a model has it.
struct Shape {
  int64_t size, kernel_y, kernel_x, stride, in, out;
  int count;
  int64_t groups = 1;

  int64_t outputs() const { return size / stride; }
  double operations() const {
    return 2.0 *
           static_cast<double>(in / groups * out * outputs() * outputs() * kernel_y * kernel_x);
  }
};

struct Model {
  const char* name;
  std::vector<Shape> shapes;
};

const std::vector<Model>& models() {
  static const std::vector<Model> all{
      {"ResNet-110",
       {{256, 3, 3, 1, 3, 16, 1},
        {256, 3, 3, 1, 16, 16, 13},
        {256, 3, 3, 1, 64, 16, 11},
        {256, 1, 1, 1, 16, 64, 13},
        {256, 3, 3, 2, 64, 64, 1},
        {256, 1, 1, 2, 64, 128, 1},
        {128, 3, 3, 1, 64, 64, 12},
        {128, 3, 3, 1, 128, 64, 11},
        {128, 1, 1, 1, 64, 128, 12},
        {128, 3, 3, 2, 128, 128, 1},
        {128, 1, 1, 2, 128, 256, 1},
        {64, 3, 3, 1, 128, 128, 12},
        {64, 3, 3, 1, 256, 128, 11},
        {64, 1, 1, 1, 128, 256, 12}}},
      {"AmoebaNet (L6, F64)",
       {{256, 3, 3, 2, 3, 16, 1},   {128, 3, 3, 2, 8, 8, 1},    {128, 1, 1, 1, 16, 32, 2},
        {128, 1, 1, 1, 32, 8, 1},   {128, 1, 1, 2, 16, 32, 2},  {64, 1, 1, 1, 8, 32, 2},
        {64, 1, 1, 1, 32, 8, 1},    {64, 1, 1, 1, 32, 32, 1},   {64, 1, 1, 1, 64, 16, 1},
        {64, 1, 1, 1, 96, 64, 1},   {64, 1, 1, 2, 96, 32, 2},   {64, 1, 7, 1, 8, 8, 1},
        {64, 7, 1, 1, 8, 8, 1},     {64, 3, 3, 2, 16, 16, 1},   {32, 1, 1, 1, 16, 64, 6},
        {32, 1, 1, 1, 64, 16, 5},   {32, 1, 1, 1, 64, 64, 7},   {32, 1, 1, 1, 128, 32, 1},
        {32, 1, 1, 1, 192, 64, 2},  {32, 1, 1, 1, 256, 64, 1},  {32, 1, 1, 1, 256, 128, 2},
        {32, 1, 1, 2, 256, 64, 2},  {32, 1, 7, 1, 16, 16, 5},   {32, 7, 1, 1, 16, 16, 5},
        {32, 3, 3, 2, 32, 32, 1},   {16, 1, 1, 1, 32, 128, 6},  {16, 1, 1, 1, 128, 32, 5},
        {16, 1, 1, 1, 128, 128, 7}, {16, 1, 1, 1, 256, 64, 1},  {16, 1, 1, 1, 384, 128, 2},
        {16, 1, 1, 1, 512, 128, 1}, {16, 1, 1, 1, 512, 256, 2}, {16, 1, 1, 2, 512, 128, 2},
        {16, 1, 7, 1, 32, 32, 5},   {16, 7, 1, 1, 32, 32, 5},   {16, 3, 3, 2, 64, 64, 1},
        {8, 1, 1, 1, 64, 256, 6},   {8, 1, 1, 1, 256, 64, 5},   {8, 1, 1, 1, 256, 256, 7},
        {8, 1, 1, 1, 768, 256, 2},  {8, 1, 1, 1, 1024, 256, 1}, {8, 1, 7, 1, 64, 64, 5},
        {8, 7, 1, 1, 64, 64, 5}}},
      {"Depthwise and grouped, as in MobileNet, EfficientNet, ConvNeXt, RegNet and ResNeXt",
       {{112, 3, 3, 1, 32, 32, 1, 32},
        {112, 3, 3, 2, 96, 96, 1, 96},
        {56, 3, 3, 1, 144, 144, 1, 144},
        {28, 3, 3, 1, 192, 192, 1, 192},
        {14, 3, 3, 1, 576, 576, 1, 576},
        {56, 5, 5, 2, 144, 144, 1, 144},
        {14, 5, 5, 1, 480, 480, 1, 480},
        {56, 7, 7, 1, 96, 96, 1, 96},
        {14, 7, 7, 1, 384, 384, 1, 384},
        {56, 3, 3, 1, 64, 64, 1, 4},
        {28, 3, 3, 1, 160, 160, 1, 10},
        {14, 3, 3, 1, 400, 400, 1, 25},
        {56, 3, 3, 1, 128, 128, 1, 32},
        {28, 3, 3, 1, 256, 256, 1, 32}}}};
  return all;
}

/// Holds what a convolution reads and writes.
struct Tensors {
  Tensors(const Shape& shape, c10::ScalarType type)
      : x(random({1, shape.in, shape.size, shape.size}, type)),
        dy(random({1, shape.out, shape.outputs(), shape.outputs()}, type)),
        weight(random({shape.out, shape.in / shape.groups, shape.kernel_y, shape.kernel_x}, type)),
        y(at::empty_like(dy)),
        dx(at::empty_like(x)),
        dweight(at::zeros_like(weight, at::kFloat)) {}

  static at::Tensor random(at::IntArrayRef shape, c10::ScalarType type) {
    return at::rand(shape).to(type).contiguous(at::MemoryFormat::ChannelsLast);
  }

  at::Tensor x, dy, weight, y, dx, dweight;
};

/// Runs forward, backward-data and backward-weights by one library.
struct Side {
  std::array<std::function<void()>, 3> passes;
};

Side by_mpi4dl(const Shape& shape, Tensors& t) {
  const ImageWindows windows{Window{shape.kernel_y, shape.stride, shape.kernel_y / 2, 1},
                             Window{shape.kernel_x, shape.stride, shape.kernel_x / 2, 1}};
  return {{[&t, windows] { convolve(t.x, t.weight, {}, windows, {}, t.y); },
           [&t, windows] { convolve_backward_data(t.dy, t.weight, windows, t.dx); },
           [&t, windows] { accumulate_weight_gradient(t.x, t.dy, windows, t.dweight); }}};
}

Side by_libtorch(const Shape& shape, Tensors& t) {
  const std::vector<int64_t> stride{shape.stride, shape.stride}, one{1, 1}, zero{0, 0},
      padding{shape.kernel_y / 2, shape.kernel_x / 2};
  const auto backward = [=, &t, groups = shape.groups](bool data) {
    at::convolution_backward(t.dy, t.x, t.weight, c10::nullopt, stride, padding, one, false, zero,
                             groups, {data, !data, false});
  };
  return {{[=, &t, groups = shape.groups] {
             at::convolution(t.x, t.weight, {}, stride, padding, one, false, zero, groups);
           },
           [=] { backward(true); }, [=] { backward(false); }}};
}

#ifdef MPI4DL_ONEDNN

/// Runs a primitive with its arguments. Weights come and go in our order, as a training step has
/// them; what it takes to reorder them counts.
class Primitive {
 public:
  Primitive(dnnl::primitive primitive, dnnl::stream stream)
      : primitive_(std::move(primitive)), stream_(std::move(stream)) {}

  void add(int argument, const dnnl::memory& memory) { arguments_[argument] = memory; }

  /// Is an argument that the primitive wants in an order of its own.
  void add(int argument, const dnnl::memory& memory, const dnnl::memory::desc& wanted,
           bool output) {
    if (memory.get_desc() == wanted) return add(argument, memory);
    const dnnl::memory other(wanted, memory.get_engine());
    add(argument, other);
    (output ? after_ : before_) = output ? Reorder{other, memory} : Reorder{memory, other};
  }

  void run() {
    if (before_) before_->run(stream_);
    primitive_.execute(stream_, arguments_);
    if (after_) after_->run(stream_);
    stream_.wait();
  }

 private:
  struct Reorder {
    Reorder(const dnnl::memory& source, const dnnl::memory& target)
        : from(source), to(target), reorder(source, target) {}
    void run(dnnl::stream& stream) { reorder.execute(stream, from, to); }
    dnnl::memory from, to;
    dnnl::reorder reorder;
  };

  dnnl::primitive primitive_;
  dnnl::stream stream_;
  std::unordered_map<int, dnnl::memory> arguments_;
  std::optional<Reorder> before_, after_;
};

/// Describes a convolution; backward takes the forward one as `hint`. Before version 3, oneDNN had
/// descriptions of their own for what a primitive computes.
template <typename Convolution, typename Hint, typename... What>
typename Convolution::primitive_desc describe(const dnnl::engine& engine, const Hint& hint,
                                              const What&... what) {
  const auto make = [&](const auto&... forward) {
#if DNNL_VERSION_MAJOR >= 3
    return typename Convolution::primitive_desc(engine, what..., forward...);
#else
    return typename Convolution::primitive_desc(typename Convolution::desc(what...), engine,
                                                forward...);
#endif
  };
  return std::apply(make, hint);
}

Side by_onednn(const Shape& shape, Tensors& t) {
  using dnnl::memory;
  using tag = memory::format_tag;
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  static const dnnl::stream stream(engine);
  const auto type =
      t.x.scalar_type() == at::kBFloat16 ? memory::data_type::bf16 : memory::data_type::f32;
  const auto dims = [](const at::Tensor& x) {
    return memory::dims(x.sizes().begin(), x.sizes().end());
  };
  const auto image = [&](const at::Tensor& x) {
    return memory({dims(x), type, tag::nhwc}, engine, x.data_ptr());
  };
  const memory x = image(t.x), y = image(t.y), dx = image(t.dx), dy = image(t.dy);
  memory::dims filters = dims(t.weight);
  tag order = tag::ohwi;
  if (shape.groups > 1) {
    filters[0] /= shape.groups;
    filters.insert(filters.begin(), shape.groups);
    order = tag::gohwi;
  }
  const memory weight({filters, type, order}, engine, t.weight.data_ptr());
  const memory dweight({filters, memory::data_type::f32, order}, engine, t.dweight.data_ptr());
  const memory::desc any({filters, type, tag::any});
  const memory::desc any_sum({filters, memory::data_type::f32, tag::any});
  const memory::dims stride{shape.stride, shape.stride},
      before{shape.kernel_y / 2, shape.kernel_x / 2};
  memory::dims after;  // padding behind the input: what the last output reads of it
  for (const int64_t kernel : {shape.kernel_y, shape.kernel_x})
    after.push_back((shape.outputs() - 1) * shape.stride + kernel - kernel / 2 - shape.size);
  constexpr auto direct = dnnl::algorithm::convolution_direct;

  const auto forward = describe<dnnl::convolution_forward>(
      engine, std::tie(), dnnl::prop_kind::forward_training, direct, x.get_desc(), any,
      y.get_desc(), stride, before, after);
  auto first = std::make_shared<Primitive>(dnnl::convolution_forward(forward), stream);
  first->add(DNNL_ARG_SRC, x);
  first->add(DNNL_ARG_WEIGHTS, weight, forward.weights_desc(), false);
  first->add(DNNL_ARG_DST, y);

  const auto data = describe<dnnl::convolution_backward_data>(
      engine, std::tie(forward), direct, dx.get_desc(), any, dy.get_desc(), stride, before, after);
  auto second = std::make_shared<Primitive>(dnnl::convolution_backward_data(data), stream);
  second->add(DNNL_ARG_DIFF_DST, dy);
  second->add(DNNL_ARG_WEIGHTS, weight, data.weights_desc(), false);
  second->add(DNNL_ARG_DIFF_SRC, dx);

  const auto weights =
      describe<dnnl::convolution_backward_weights>(engine, std::tie(forward), direct, x.get_desc(),
                                                   any_sum, dy.get_desc(), stride, before, after);
  auto third = std::make_shared<Primitive>(dnnl::convolution_backward_weights(weights), stream);
  third->add(DNNL_ARG_SRC, x);
  third->add(DNNL_ARG_DIFF_DST, dy);
  third->add(DNNL_ARG_DIFF_WEIGHTS, dweight, weights.diff_weights_desc(), true);
  return {{[first] { first->run(); }, [second] { second->run(); }, [third] { third->run(); }}};
}

/// Throws where oneDNN and our kernels differ: one of them is called wrongly.
void check(const Side& onednn, const Side& kernels, Tensors& t) {
  const std::array<at::Tensor*, 3> results{&t.y, &t.dx, &t.dweight};
  for (size_t pass = 0; pass < results.size(); ++pass) {
    onednn.passes[pass]();
    const at::Tensor expected = results[pass]->to(at::kDouble);
    results[pass]->zero_();
    kernels.passes[pass]();
    const double apart = (results[pass]->to(at::kDouble) - expected).abs().max().item<double>();
    ensure(apart <= 0.02 * expected.abs().max().item<double>(),
           "oneDNN and our kernels differ by {} in pass {}", apart, pass);
  }
}

#endif

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double seconds(const std::function<void()>& work, int repeats) {
  const double start = processor_seconds();
  for (int i = 0; i < repeats; ++i) work();
  return (processor_seconds() - start) / repeats;
}

/// Returns the seconds of each pass by each side; sides alternate.
std::vector<std::array<double, 3>> measure(const std::vector<Side>& sides, const Shape& shape) {
  const int repeats = std::max(1, static_cast<int>(5e6 / shape.operations()));
  std::vector<std::array<double, 3>> result(sides.size());
  for (size_t pass = 0; pass < 3; ++pass) {
    std::vector<std::vector<double>> times(sides.size());
    for (const Side& side : sides) side.passes[pass]();
    for (int round = 0; round < kRounds; ++round)
      for (size_t side = 0; side < sides.size(); ++side)
        times[side].push_back(seconds(sides[side].passes[pass], repeats));
    for (size_t side = 0; side < sides.size(); ++side) result[side][pass] = median(times[side]);
  }
  return result;
}

void measure(const Model& model, c10::ScalarType type) {
  std::vector<std::string> names{"libtorch", "mpi4dl"};
#ifdef MPI4DL_ONEDNN
  const bool direct = type != at::kBFloat16 || has_avx512_bf16(InstructionSet::avx512);
  if (direct) names.insert(names.begin(), "oneDNN");
#endif
  std::string header = fmt::format("| {}: window, channels, size |", model.name), rule = "|---|";
  for (const char* pass : {"forward", "backward-data", "backward-weights"})
    for (const std::string& name : names) {
      header +=
          fmt::format(" {}{} |", name == names.front() ? fmt::format("{}: ", pass) : "", name);
      rule += "---|";
    }
  fmt::print("{}\n{}\n", header, rule);
  std::vector<std::array<double, 3>> total(names.size());
  for (const Shape& shape : model.shapes) {
    Tensors tensors(shape, type);
    std::vector<Side> sides{by_libtorch(shape, tensors), by_mpi4dl(shape, tensors)};
#ifdef MPI4DL_ONEDNN
    if (direct) {
      sides.insert(sides.begin(), by_onednn(shape, tensors));
      check(sides.front(), sides.back(), tensors);
    }
#endif
    const auto times = measure(sides, shape);
    std::string row =
        fmt::format("| {}×{}{}, {} → {}{}, {}², {} times |", shape.kernel_y, shape.kernel_x,
                    shape.stride == 1 ? "" : fmt::format(" / {}", shape.stride), shape.in,
                    shape.out, shape.groups == 1 ? "" : fmt::format(" in {} groups", shape.groups),
                    shape.size, shape.count);
    for (size_t pass = 0; pass < 3; ++pass)
      for (size_t side = 0; side < sides.size(); ++side) {
        row += fmt::format(" {:.0f} |", shape.operations() / times[side][pass] * 1e-9);
        total[side][pass] += shape.count * times[side][pass];
      }
    fmt::print("{}\n", row);
    std::fflush(stdout);
  }
  std::string row = "| **all, in ms** |";
  for (size_t pass = 0; pass < 3; ++pass)
    for (const auto& side : total) row += fmt::format(" **{:.1f}** |", 1e3 * side[pass]);
  fmt::print("{}\n\n", row);
}

}  // namespace

int main(int argc, char** argv) {
  keep_onednn_from_amx_of_unknown_size();
  at::set_num_threads(1);
  const at::NoGradGuard no_grad;
  const bool half = argc > 1 && std::string(argv[1]) == "bfloat16";
  if (argc > 2 || (argc == 2 && !half)) {
    fmt::print(stderr, "usage: bench-convolutions [bfloat16]\n");
    return 2;
  }
  fmt::print("GFLOP/s, one thread, {}\n\n", name_of(instruction_set()));
  for (const Model& model : models()) measure(model, half ? at::kBFloat16 : at::kFloat);
}
