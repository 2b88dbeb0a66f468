#include "bench/halo_benchmark.hpp"

#include <ATen/ATen.h>
#include <mpi.h>

#include <chrono>

#include "backend/backend.hpp"
#include "base/error.hpp"
#include "comm/all_reduce_choice.hpp"
#include "comm/check.hpp"
#include "comm/collectives.hpp"
#include "comm/sharded_reduction.hpp"
#include "comm/staging.hpp"
#include "geometry/window.hpp"

namespace mpi4dl {
namespace {

constexpr int kRowAxis = 2;
constexpr int kColAxis = 3;
constexpr int kBareTag = 1 << 20;  // beyond what the redistribution reserves

/// This is below 2^24, so that float32 holds every value exactly.
constexpr int64_t kDistinctValues = 16777213;

c10::ScalarType scalar_type(const std::string& name) {
  return name == "float64" ? at::kDouble : at::kFloat;
}

/// Gives each pixel of a box its position in the whole image as value; outside it is zero.
at::Tensor position_values(const Box& box, const Box& image, c10::ScalarType type) {
  at::Tensor index = at::zeros({1, 1, 1, 1}, at::kLong);
  at::Tensor inside = at::ones({1, 1, 1, 1}, at::kBool);
  for (int axis = 0; axis < box.axes(); ++axis) {
    std::vector<int64_t> shape(box.axes(), 1);
    shape[axis] = box[axis].length();
    const at::Tensor at_axis = at::arange(box[axis].begin, box[axis].end, at::kLong).view(shape);
    index = index * image[axis].length() + at_axis;
    inside = inside.logical_and(at_axis.ge(0).logical_and(at_axis.lt(image[axis].end)));
  }
  return index.remainder(kDistinctValues).mul(inside).to(type);
}

Box grow(Box box, int64_t margin) {
  for (const int axis : {kRowAxis, kColAxis}) {
    box[axis].begin -= margin;
    box[axis].end += margin;
  }
  return box;
}

void check(const HaloOptions& options, const Grid& grid, int ranks) {
  validate(options.parts == ranks,
           "{} spatial parts need one rank each, but there are {}; start with mpirun -np {}",
           options.parts, ranks, options.parts);
  validate(
      grid.rows <= options.height && grid.cols <= options.width,
      "an image of {}x{} pixels cannot be cut into {} tiles; use fewer parts or a larger image",
      options.height, options.width, to_string(grid));
}

double seconds_of(const Communicator& comm, const std::function<void()>& work) {
  barrier(comm);
  const auto start = std::chrono::steady_clock::now();
  work();
  await_device(comm.context());
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

int64_t mismatches(const at::Tensor& got, const at::Tensor& expected) {
  return got.cpu().ne(expected.cpu()).sum().item<int64_t>();
}

}  // namespace

HaloBenchmark::HaloBenchmark(const Session& session, const HaloOptions& options)
    : world_(session.world()),
      options_(options),
      grid_(make_grid(options.slice_method, options.parts)) {
  check(options, grid_, world_.size());
  const std::vector<int64_t> shape{options.batch, options.in_channels, options.height,
                                   options.width};
  image_ = Box::whole(shape);
  std::vector<std::vector<Box>> owned;
  for (int rank = 0; rank < world_.size(); ++rank) {
    owned.push_back({grid_.owned(shape, rank)});
    needed_.push_back({intersect(grow(owned.back()[0], options.halo), image_)});
  }
  owned_ = owned[world_.rank()][0];
  const auto type = scalar_type(options.dtype);
  const at::TensorOptions where = world_.context().backend->options(type);
  buffer_ = make_patch(world_, grow(owned_, options.halo), type);
  tile_ = {owned_, buffer_.view(owned_)};
  gradient_ = make_patch(world_, buffer_.box, type);
  const int64_t kernel = 2 * options.halo + 1;
  at::manual_seed(1);
  weight_ = at::randn({options.out_channels, options.in_channels, kernel, kernel}, type)
                .contiguous(at::MemoryFormat::ChannelsLast)
                .to(where.device());
  weight_gradient_ = at::ones({weight_.numel()}, where);
  halo_ = std::make_unique<Redistribution>(world_, owned, needed_, options.transport);
  const auto buffers = [type](const std::vector<Route>& routes) {
    std::vector<std::vector<std::byte>> all;
    for (const Route& route : routes) all.emplace_back(route.elements() * c10::elementSize(type));
    return all;
  };
  bare_send_ = buffers(halo_->routes().send);
  bare_receive_ = buffers(halo_->routes().receive);
  fill_owned();
}

void HaloBenchmark::fill_owned() {
  buffer_.data.zero_();
  tile_.data.copy_(position_values(owned_, image_, buffer_.data.scalar_type()));
}

Timings HaloBenchmark::measure() {
  Timings timings;
  for (int i = -options_.warmup; i < options_.iterations; ++i) {
    const auto time = [&](std::vector<double>& series, const std::function<void()>& work) {
      const double seconds = seconds_of(world_, work);
      if (i >= 0) series.push_back(seconds);
    };
    time(timings.exchange, [this] { exchange(); });
    time(timings.bare, [this] { exchange_bare(); });
    if (options_.backward) {
      gradient_.data.zero_();
      time(timings.adjoint,
           [this] { halo_->run_adjoint(gradient_, {owned_, gradient_.view(owned_)}); });
      weight_gradient_.fill_(1);
      time(timings.reduction, [this] { sum_weight_gradients(); });
    }
    if (options_.compute) {
      time(timings.sequential, [this] { exchange(), convolve(); });
      time(timings.overlapped, [this] { convolve_overlapped(); });
    }
  }
  return timings;
}

/// Does what a hand-written program would do at best: contiguous buffers in host memory, bare MPI
/// calls.
void HaloBenchmark::exchange_bare() {
  std::vector<MPI_Request> requests;
  requests.reserve(bare_send_.size() + bare_receive_.size());
  const auto each = [&](auto call, const std::vector<Route>& routes,
                        std::vector<std::vector<std::byte>>& buffers) {
    for (size_t i = 0; i < routes.size(); ++i)
      mpi(call(buffers[i].data(), static_cast<int>(buffers[i].size()), MPI_BYTE, routes[i].peer,
               kBareTag, world_.handle(), &requests.emplace_back()));
  };
  each(MPI_Irecv, halo_->routes().receive, bare_receive_);
  each(MPI_Isend, halo_->routes().send, bare_send_);
  mpi(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE));
}

bool HaloBenchmark::sums_in_memory() const {
  return world_.on_one_node() && options_.transport == Transport::shared_memory;
}

std::string HaloBenchmark::describe_reduction() const {
  if (sums_in_memory()) return explain(all_reduce_case(weight_gradient_, world_));
  return fmt::format("{} bytes on {} ranks are added up in shards, which travel{} as messages",
                     weight_gradient_.nbytes(), world_.size(),
                     options_.half_gradients ? " in float16" : "");
}

/// Sums as training does: in shared memory within a node, in shards between nodes.
void HaloBenchmark::sum_weight_gradients() {
  if (sums_in_memory()) {
    all_reduce(weight_gradient_, world_);
    return;
  }
  using Wire = ShardedReduction::Wire;
  ShardedReduction sum(weight_gradient_, world_,
                       options_.half_gradients ? Wire::half : Wire::as_it_is);
  sum.send_on();
  sum.finish();
}

at::Tensor HaloBenchmark::convolve() const {
  return at::conv2d(buffer_.data, weight_);
}

Box HaloBenchmark::inputs_of(const Box& outputs) const {
  Box inputs = outputs;
  inputs[1] = {0, options_.in_channels};
  const Window window{.kernel = 2 * options_.halo + 1, .padding = options_.halo};
  for (const int axis : {kRowAxis, kColAxis}) inputs[axis] = window.need(outputs[axis]);
  return inputs;
}

/// Computes the interior, which needs no halo, during the exchange, then the strips around it.
at::Tensor HaloBenchmark::convolve_overlapped() {
  auto flight = halo_->start(tile_, buffer_);
  Box all = owned_;
  all[1] = {0, options_.out_channels};
  Patch output{all, at::empty(all.shape(), buffer_.data.options(), memory_format(all))};
  const auto compute = [&](const Box& part) {
    output.view(part).copy_(at::conv2d(buffer_.view(inputs_of(part)), weight_));
  };
  Box inner = all;
  for (const int axis : {kRowAxis, kColAxis}) {
    if (all[axis].begin > 0) inner[axis].begin += options_.halo;
    if (all[axis].end < image_[axis].end) inner[axis].end -= options_.halo;
  }
  if (inner.empty()) {
    flight.finish();
    compute(all);
    return output.data;
  }
  compute(inner);
  flight.finish();
  for (const Box& strip : difference(all, inner)) compute(strip);
  return output.data;
}

int64_t HaloBenchmark::count_wrong() {
  fill_owned();
  exchange();
  int64_t wrong = wrong_halo();
  if (options_.backward) wrong += wrong_adjoint() + wrong_weight_gradients();
  if (options_.compute) wrong += wrong_convolution();
  return wrong;
}

int64_t HaloBenchmark::wrong_halo() const {
  return mismatches(buffer_.data, position_values(buffer_.box, image_, buffer_.data.scalar_type()));
}

/// Counts errors of the adjoint: with ones everywhere, a pixel's gradient counts the ranks that
/// need it.
int64_t HaloBenchmark::wrong_adjoint() {
  Patch sums{owned_, at::zeros(owned_.shape(), buffer_.data.options())};
  gradient_.data.fill_(1);
  halo_->run_adjoint(gradient_, sums);
  Patch expected{owned_, at::zeros(owned_.shape(), buffer_.data.options())};
  for (const auto& boxes : needed_)
    if (const Box both = intersect(boxes[0], owned_); !both.empty()) expected.view(both).add_(1);
  return mismatches(sums.data, expected.data);
}

/// Counts errors of the sum: ones add up to the number of ranks, in 16 bits too.
int64_t HaloBenchmark::wrong_weight_gradients() {
  weight_gradient_.fill_(1);
  sum_weight_gradients();
  return mismatches(weight_gradient_, at::full_like(weight_gradient_, world_.size()));
}

/// Compares with the convolution of the zero-padded whole image, cut to this tile and made from
/// global positions alone. Cutting convolutions apart may round differently, hence a tolerance.
int64_t HaloBenchmark::wrong_convolution() {
  const auto type = buffer_.data.scalar_type();
  const at::Tensor whole = position_values(buffer_.box, image_, type);
  const at::Tensor weight = weight_.cpu();
  const at::Tensor expected = at::conv2d(whole, weight);
  const at::Tensor scale = at::conv2d(whole, weight.abs());
  const double tolerance = type == at::kDouble ? 1e-12 : 1e-4;
  const auto count = [&](const at::Tensor& got) {
    return (got.cpu() - expected).abs().gt(scale * tolerance).sum().item<int64_t>();
  };
  const int64_t wrong = count(convolve());
  fill_owned();
  return wrong + count(convolve_overlapped());
}

int64_t HaloBenchmark::route_bytes(const std::vector<Route>& routes) const {
  int64_t elements = 0;
  for (const Route& route : routes) elements += route.elements();
  return elements * static_cast<int64_t>(buffer_.data.element_size());
}

int64_t HaloBenchmark::bytes_sent() const {
  return route_bytes(halo_->routes().send);
}
int64_t HaloBenchmark::bytes_received() const {
  return route_bytes(halo_->routes().receive);
}

}  // namespace mpi4dl
