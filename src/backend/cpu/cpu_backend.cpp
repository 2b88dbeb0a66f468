#include "backend/cpu/cpu_backend.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "backend/channels_last.hpp"
#include "backend/cpu/average_pooling.hpp"
#include "backend/cpu/convolution.hpp"
#include "backend/cpu/normalisation.hpp"
#include "backend/cpu/optimizer_update.hpp"
#include "backend/precision.hpp"

namespace mpi4dl {
namespace {

ImageWindows image_windows(const ConvolutionTile& tile) {
  return {tile.windows[0], tile.windows[1]};
}

bool alike(const at::Tensor& x, const at::Tensor& other) {
  return other.scalar_type() == x.scalar_type() && is_channels_last(other);
}

template <typename... Others>
bool suited(const at::Tensor& x, const Others&... others) {
  return cpu::suited_for_normalisation(x) && (alike(x, others) && ...);
}

/// Returns a value for each channel that `value(channel)` has, without the calls of libtorch that
/// composing it would take: there are few channels, and many layers.
template <typename Value>
at::Tensor channel_vector(int64_t channels, const Value& value) {
  at::Tensor vector = at::empty({channels}, at::kDouble);
  auto* elements = vector.data_ptr<double>();
  for (int64_t channel = 0; channel < channels; ++channel) elements[channel] = value(channel);
  return vector;
}

/// Reads elements of a vector of any type as float64.
class Elements {
 public:
  explicit Elements(const at::Tensor& vector)
      : single_(vector.scalar_type() == at::kFloat && vector.is_contiguous()),
        vector_(single_ ? vector : vector.to(at::kDouble).contiguous()),
        data_(vector_.data_ptr()) {}
  double operator[](int64_t i) const {
    return single_ ? static_cast<const float*>(data_)[i] : static_cast<const double*>(data_)[i];
  }

 private:
  bool single_;
  at::Tensor vector_;
  const void* data_;
};

/// Returns what outputs read along an axis, and by how much their sums are divided.
std::vector<ReceptiveRange> receptive_ranges(const PoolingTile::Axis& axis, bool include_pad) {
  std::vector<ReceptiveRange> all;
  const Interval& inputs = axis.inputs;
  for (int64_t output = axis.outputs.begin; output < axis.outputs.end; ++output) {
    const int64_t begin = output * axis.window.stride - axis.window.padding;
    const int64_t end =
        std::min(begin + axis.window.kernel, axis.length + axis.window.padding_end());
    const int64_t counted =
        include_pad ? end - begin : std::min(end, axis.length) - std::max<int64_t>(begin, 0);
    all.push_back({std::max(begin, inputs.begin) - inputs.begin,
                   std::min(begin + axis.window.kernel, inputs.end) - inputs.begin,
                   static_cast<double>(counted)});
  }
  return all;
}

template <typename Visit>
void visit_packed(std::span<const Box> boxes, std::byte* data, c10::ScalarType type,
                  const Visit& visit) {
  for (const Box& box : boxes) {
    visit(box, packed(data, box, type));
    data += box.elements() * static_cast<int64_t>(c10::elementSize(type));
  }
}

std::byte* bytes_of(const at::Tensor& tensor) {
  return static_cast<std::byte*>(tensor.data_ptr());
}

}  // namespace

void CpuBackend::move(Combine how, const Patch& from, const Patch& to, const Box& box) const {
  const Strided source = strided(from, box);
  if (source.data != strided(to, box).data) read(how, source, to, box);
}

void CpuBackend::read(Combine how, const Strided& host, const Patch& to, const Box& box) const {
  how == Combine::add ? add(strided(to, box), host) : copy(strided(to, box), host);
}

void CpuBackend::clear(const Patch& patch, const Box& box) const {
  mpi4dl::clear(strided(patch, box));
}

at::Tensor CpuBackend::gather(const Patch& from, std::span<const Box> boxes) const {
  int64_t elements = 0;
  for (const Box& box : boxes) elements += box.elements();
  at::Tensor packed = at::empty({elements}, from.data.scalar_type());
  pack(from, boxes, bytes_of(packed));
  return packed;
}

void CpuBackend::unpack(Combine how, const at::Tensor& packed, std::span<const Box> boxes,
                        const Patch& to) const {
  visit_packed(boxes, bytes_of(packed), packed.scalar_type(),
               [&](const Box& box, const Strided& values) { read(how, values, to, box); });
}

void CpuBackend::pack(const Patch& from, std::span<const Box> boxes, std::byte* host) const {
  visit_packed(boxes, host, from.data.scalar_type(),
               [&](const Box& box, const Strided& place) { copy(place, strided(from, box)); });
}

bool CpuBackend::wants_padded_input(const at::Tensor& x, const at::Tensor& weight,
                                    int64_t groups) const {
  return !has_convolution_kernel(x, weight, weight.size(0), groups, set_);
}

at::Tensor CpuBackend::convolve(const ConvolutionTile& tile, const at::Tensor& x,
                                const at::Tensor& weight, const at::Tensor& bias,
                                const at::Tensor& residual, const at::Tensor& target) const {
  if (!has_convolution_kernel(x, weight, weight.size(0), tile.groups, set_))
    return ComposedBackend::convolve(tile, x, weight, bias, residual, target);
  const at::Tensor y =
      target.defined() ? target
                       : empty_image({x.size(0), weight.size(0), tile.outputs[0], tile.outputs[1]},
                                     x.scalar_type());
  mpi4dl::convolve(x, weight, bias, image_windows(tile), residual, y, set_);
  return y;
}

at::Tensor CpuBackend::convolve_backward_data(const ConvolutionTile& tile, const at::Tensor& dy,
                                              const at::Tensor& weight,
                                              at::IntArrayRef shape) const {
  if (dy.dim() != 4) return ComposedBackend::convolve_backward_data(tile, dy, weight, shape);
  const at::Tensor gradient = to_channels_last(dy);
  if (!has_convolution_kernel(gradient, weight, shape[1], tile.groups, set_))
    return ComposedBackend::convolve_backward_data(tile, dy, weight, shape);
  at::Tensor dx = empty_image(shape, dy.scalar_type());
  mpi4dl::convolve_backward_data(gradient, weight, image_windows(tile), dx, set_);
  return dx;
}

void CpuBackend::accumulate_weight_gradient(const ConvolutionTile& tile, const at::Tensor& x,
                                            const at::Tensor& dy, const at::Tensor& sums) const {
  if (!has_convolution_kernel(x, dy, dy.size(1), tile.groups, set_))
    return ComposedBackend::accumulate_weight_gradient(tile, x, dy, sums);
  mpi4dl::accumulate_weight_gradient(x, to_channels_last(dy), image_windows(tile), sums, set_);
}

at::Tensor CpuBackend::channel_moments(const at::Tensor& x) const {
  return suited(x) ? cpu::channel_moments(x, set_) : ComposedBackend::channel_moments(x);
}

at::Tensor CpuBackend::channel_sums(const at::Tensor& x) const {
  return suited(x) ? cpu::channel_sums(x, set_) : ComposedBackend::channel_sums(x);
}

ChannelStatistics CpuBackend::statistics(const at::Tensor& moments) const {
  const double* all = moments.data_ptr<double>();
  const int64_t channels = moments.size(0);
  const auto count = [all](int64_t channel) { return all[3 * channel]; };
  const auto squares = [all](int64_t channel) { return all[3 * channel + 2]; };
  return {channel_vector(channels, [&](int64_t c) { return all[3 * c + 1]; }),
          channel_vector(channels, [&](int64_t c) { return squares(c) / count(c); }),
          channel_vector(channels,
                         [&](int64_t c) { return squares(c) / std::max(count(c) - 1, 1.0); })};
}

ChannelMap CpuBackend::channel_map(const ChannelStatistics& statistics, const at::Tensor& weight,
                                   const at::Tensor& bias, double eps) const {
  const int64_t channels = weight.numel();
  const Elements mean(statistics.mean), variance(statistics.variance), scale(weight), shift(bias);
  ChannelMap map{at::empty({4, channels}, at::kDouble)};
  auto* values = map.values.data_ptr<double>();
  for (int64_t channel = 0; channel < channels; ++channel, ++values) {
    const double inverse_deviation = 1 / std::sqrt(variance[channel] + eps);
    values[0] = mean[channel];
    values[channels] = inverse_deviation;
    values[2 * channels] = scale[channel] * inverse_deviation;
    values[3 * channels] = shift[channel];
  }
  return map;
}

void CpuBackend::normalise(const at::Tensor& x, const ChannelMap& map, const at::Tensor& residual,
                           const at::Tensor& y) const {
  if (suited(x, y) && (!residual.defined() || alike(x, residual)))
    return cpu::normalise(x, map, residual, y, set_);
  ComposedBackend::normalise(x, map, residual, y);
}

at::Tensor CpuBackend::gradient_sums(const at::Tensor& dy, const at::Tensor& x,
                                     const ChannelMap& map) const {
  return suited(x, dy) ? cpu::gradient_sums(dy, x, map, set_)
                       : ComposedBackend::gradient_sums(dy, x, map);
}

at::Tensor CpuBackend::gradient_means(const at::Tensor& sums, const at::Tensor& moments) const {
  at::Tensor means = at::empty(sums.sizes(), at::kDouble);
  const double *sum = sums.data_ptr<double>(), *moment = moments.data_ptr<double>();
  auto* mean = means.data_ptr<double>();
  const int64_t channels = moments.size(0);
  for (int64_t i = 0; i < 2 * channels; ++i) mean[i] = sum[i] / moment[3 * (i % channels)];
  return means;
}

std::vector<at::Tensor> CpuBackend::rows(const at::Tensor& matrix) const {
  std::vector<at::Tensor> all;
  for (int64_t row = 0; row < matrix.size(0); ++row) {
    const double* from = matrix.data_ptr<double>() + row * matrix.size(1);
    all.push_back(channel_vector(matrix.size(1), [from](int64_t c) { return from[c]; }));
  }
  return all;
}

void CpuBackend::normalise_backward(const at::Tensor& dy, const at::Tensor& x,
                                    const ChannelMap& map, const at::Tensor& means,
                                    const at::Tensor& dx) const {
  if (suited(x, dy, dx)) return cpu::normalise_backward(dy, x, map, means, dx, set_);
  ComposedBackend::normalise_backward(dy, x, map, means, dx);
}

at::Tensor CpuBackend::average_pool(const PoolingTile& tile, const at::Tensor& x) const {
  if (!has_average_pooling(x)) return ComposedBackend::average_pool(tile, x);
  const PoolingTile::Axis &rows = tile.axes[0], &cols = tile.axes[1];
  at::Tensor y = empty_image({x.size(0), x.size(1), rows.outputs.length(), cols.outputs.length()},
                             x.scalar_type());
  mpi4dl::average_pool(x, receptive_ranges(rows, tile.count_include_pad),
                       receptive_ranges(cols, tile.count_include_pad), y, set_);
  return y;
}

at::Tensor CpuBackend::average_pool_backward(const PoolingTile& tile, const at::Tensor& dy,
                                             at::IntArrayRef shape) const {
  if (tile.axes.size() != 2 || dy.numel() == 0)
    return ComposedBackend::average_pool_backward(tile, dy, shape);
  at::Tensor dx = empty_image(shape, dy.scalar_type());
  if (!has_average_pooling(dx)) return ComposedBackend::average_pool_backward(tile, dy, shape);
  mpi4dl::average_pool_backward(to_channels_last(dy),
                                receptive_ranges(tile.axes[0], tile.count_include_pad),
                                receptive_ranges(tile.axes[1], tile.count_include_pad), dx, set_);
  return dx;
}

void CpuBackend::add_scaled(const at::Tensor& sum, const at::Tensor& elements, double scale) const {
  // Batch norm's are float64; where the sum is not, libtorch would copy both before and after.
  if (elements.scalar_type() == at::kDouble && sum.is_contiguous() && elements.is_contiguous())
    return cpu::add_scaled(sum, elements, scale);
  ComposedBackend::add_scaled(sum, elements, scale);
}

void CpuBackend::clear(const at::Tensor& vector, const Interval& part) const {
  with_elements(vector,
                [&](auto* elements) { std::fill(elements + part.begin, elements + part.end, 0); });
}

void CpuBackend::update_running(const at::Tensor& running, const at::Tensor& sum,
                                const at::Tensor& count, double momentum) const {
  cpu::update_running(running, sum, count, momentum);
}

void CpuBackend::sgd(const SgdStep& step, const at::Tensor& values, const at::Tensor& gradients,
                     const at::Tensor& momentum_buffer) const {
  cpu::sgd(step, values, gradients, momentum_buffer);
}

void CpuBackend::adam(const AdamStep& step, const at::Tensor& values, const at::Tensor& gradients,
                      const at::Tensor& exp_avg, const at::Tensor& exp_avg_sq) const {
  cpu::adam(step, values, gradients, exp_avg, exp_avg_sq);
}

}  // namespace mpi4dl
