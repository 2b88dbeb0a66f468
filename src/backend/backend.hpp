#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/TensorOptions.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/patch.hpp"
#include "backend/side_stream.hpp"
#include "backend/strided.hpp"
#include "geometry/window.hpp"

namespace mpi4dl {

enum class Combine { copy, add };

/// Describes the tile of a convolution: a window for each spatial axis, whose padding is what lies
/// before the tile's input, and how many outputs it has. Whatever is read beyond the input is zero.
struct ConvolutionTile {
  std::vector<Window> windows;
  std::vector<int64_t> outputs;
  int64_t groups = 1;
};

/// Describes the tile of an average pooling. Intervals are rows of the whole image.
struct PoolingTile {
  struct Axis {
    Window window;
    Interval outputs, inputs;
    int64_t length;  ///< of the image
  };
  std::vector<Axis> axes;
  bool count_include_pad = true;
};

/// ChannelMap is the map y = (x - mean) * scale + bias of each channel, and then, if asked for,
/// ReLU.
struct ChannelMap {
  at::Tensor values;  ///< mean, 1/sigma, scale, bias: 4 x C, float64
  bool relu = false;
};

/// Holds what a batch norm knows of each channel, float64.
struct ChannelStatistics {
  at::Tensor mean, variance;
  at::Tensor unbiased = {};  ///< variance, for the running statistics
};

struct SgdStep {
  double learning_rate, scale, weight_decay, momentum;
};

struct AdamStep {
  double learning_rate, scale, weight_decay;
  bool decoupled;  ///< weight decay as AdamW has it
  int64_t count;   ///< of steps, this one included
};

/// Holds what Adam's formula multiplies by in a step.
struct AdamFactors {
  explicit AdamFactors(const AdamStep& step);
  static constexpr double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double rate, spread, decay, shrink;
};

/// Owns the arithmetic on tensors of one device, and their memory: whoever is above carries tensors
/// and never looks inside. One is chosen when the program starts.
///
/// Tensors are (N, C, ...), channels-last where their backend wants it, and may be views with gaps
/// between their rows. Sums and statistics of channels are float64. All tensors are on the device,
/// unless a name says "host".
class Backend {
 public:
  explicit Backend(at::Device device);
  virtual ~Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  virtual std::string_view name() const = 0;
  const at::Device& device() const { return device_; }
  bool on_host() const { return device_.is_cpu(); }
  at::TensorOptions options(c10::ScalarType type) const {
    return at::TensorOptions(device_).dtype(type);
  }
  /// Returns the stream for what travels while the device computes. The host has none.
  const SideStream& side_stream() const { return *side_stream_; }
  /// Returns values of host memory on the device, without waiting for it.
  at::Tensor from_host(const at::Tensor& values) const;

  // Boxes.

  /// Makes a patch without values, channels-last.
  Patch empty(const Box& box, c10::ScalarType type) const;
  /// Copies or adds a box of one patch to the same box of another; nothing is done where both are
  /// the same memory.
  virtual void move(Combine how, const Patch& from, const Patch& to, const Box& box) const = 0;
  /// Combines a box with values in host memory.
  virtual void read(Combine how, const Strided& host, const Patch& to, const Box& box) const = 0;
  /// Writes zeros into a box of a patch.
  virtual void clear(const Patch& patch, const Box& box) const = 0;
  /// Returns the values of boxes one after the other, packed.
  virtual at::Tensor gather(const Patch& from, std::span<const Box> boxes) const = 0;
  /// Combines boxes with what gather has packed.
  virtual void unpack(Combine how, const at::Tensor& packed, std::span<const Box> boxes,
                      const Patch& to) const = 0;
  /// Writes boxes one after the other into host memory.
  virtual void pack(const Patch& from, std::span<const Box> boxes, std::byte* host) const = 0;

  // Convolutions. A weight is (out, in / groups, ...); `bias` and `residual` may be undefined.

  /// Returns whether it is cheaper to hand over an input with zeros around it, where there is one
  /// in memory, than to leave the padding to the backend.
  virtual bool wants_padded_input(const at::Tensor& x, const at::Tensor& weight,
                                  int64_t groups) const = 0;
  /// Returns the outputs, with the residual added: `target`, written into, where it is defined.
  virtual at::Tensor convolve(const ConvolutionTile& tile, const at::Tensor& x,
                              const at::Tensor& weight, const at::Tensor& bias,
                              const at::Tensor& residual, const at::Tensor& target) const = 0;
  /// Returns the gradient of the input, which has this shape.
  virtual at::Tensor convolve_backward_data(const ConvolutionTile& tile, const at::Tensor& dy,
                                            const at::Tensor& weight,
                                            at::IntArrayRef shape) const = 0;
  /// Adds the gradient of the weight to `sums`, which have the wide type.
  virtual void accumulate_weight_gradient(const ConvolutionTile& tile, const at::Tensor& x,
                                          const at::Tensor& dy, const at::Tensor& sums) const = 0;

  // Normalisation.

  /// Returns for each channel count, mean and sum of squared deviations from it: C x 3.
  virtual at::Tensor channel_moments(const at::Tensor& x) const = 0;
  /// Returns the sum of each channel.
  virtual at::Tensor channel_sums(const at::Tensor& x) const = 0;
  virtual ChannelStatistics statistics(const at::Tensor& moments) const = 0;
  /// Returns the map of a batch norm: y = (x - mean) / sqrt(variance + eps) * weight + bias.
  virtual ChannelMap channel_map(const ChannelStatistics& statistics, const at::Tensor& weight,
                                 const at::Tensor& bias, double eps) const = 0;
  /// Writes y. `residual`, if it is defined, is added before the ReLU.
  virtual void normalise(const at::Tensor& x, const ChannelMap& map, const at::Tensor& residual,
                         const at::Tensor& y) const = 0;
  /// Returns the sums over all pixels of dy and of dy * xhat, where y was not cut off by the ReLU:
  /// 2 x C. The cut is computed again from x, so nobody needs to keep y.
  virtual at::Tensor gradient_sums(const at::Tensor& dy, const at::Tensor& x,
                                   const ChannelMap& map) const = 0;
  /// Returns such sums divided by the count of pixels that the moments have.
  virtual at::Tensor gradient_means(const at::Tensor& sums, const at::Tensor& moments) const = 0;
  /// Returns copies of the rows of a matrix.
  virtual std::vector<at::Tensor> rows(const at::Tensor& matrix) const = 0;
  /// Writes dx = scale * (dy - mean of dy - mean of dy * xhat * xhat), where dy counts only if y
  /// was not cut off; with undefined means dx = scale * dy. `dx` may be the memory of `dy`.
  virtual void normalise_backward(const at::Tensor& dy, const at::Tensor& x, const ChannelMap& map,
                                  const at::Tensor& means, const at::Tensor& dx) const = 0;

  // Average pooling.

  virtual at::Tensor average_pool(const PoolingTile& tile, const at::Tensor& x) const = 0;
  virtual at::Tensor average_pool_backward(const PoolingTile& tile, const at::Tensor& dy,
                                           at::IntArrayRef shape) const = 0;

  // Parameters and what is added up for them: dense vectors of the same length.

  /// Does sum += scale * elements.
  virtual void add_scaled(const at::Tensor& sum, const at::Tensor& elements,
                          double scale) const = 0;
  /// Writes zeros into a part of a vector.
  virtual void clear(const at::Tensor& vector, const Interval& part) const = 0;
  /// Does running += momentum * (sum / count - running), unless the count, which has one element,
  /// is 0.
  virtual void update_running(const at::Tensor& running, const at::Tensor& sum,
                              const at::Tensor& count, double momentum) const = 0;
  /// `momentum_buffer` may be undefined.
  virtual void sgd(const SgdStep& step, const at::Tensor& values, const at::Tensor& gradients,
                   const at::Tensor& momentum_buffer) const = 0;
  virtual void adam(const AdamStep& step, const at::Tensor& values, const at::Tensor& gradients,
                    const at::Tensor& exp_avg, const at::Tensor& exp_avg_sq) const = 0;

 private:
  at::Device device_;
  std::unique_ptr<const SideStream> side_stream_;
};

/// Makes a backend by its name: "cpu" (our kernels), "composed" (libtorch's operators), or "auto",
/// which is cpu on the host and composed on any other device.
std::shared_ptr<const Backend> make_backend(const std::string& name, at::Device device);

}  // namespace mpi4dl
