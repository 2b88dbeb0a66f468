#include "ops/kernels/normalisation.hpp"

#include <ATen/ATen.h>
#include <ATen/record_function.h>

#include <vector>

#include "ops/kernels/by_type.hpp"
#include "ops/kernels/composed.hpp"
#include "ops/kernels/memory_order.hpp"
#include "ops/kernels/pixel_tables.hpp"
#include "ops/kernels/vectorised.hpp"

namespace mpi4dl {
namespace {

/// So many rows are summed with few digits before they are added to a sum with many.
constexpr int64_t kBlock = 256;

template <typename... Tensors>
bool suited(const at::Tensor& first, const Tensors&... others) {
  const auto type = first.scalar_type();
  const auto alike = [type](const at::Tensor& tensor) {
    return tensor.is_cpu() && tensor.scalar_type() == type && channels_side_by_side(tensor);
  };
  return (type == at::kFloat || type == at::kDouble || type == at::kBFloat16) && alike(first) &&
         (alike(others) && ...);
}

/// count, mean and squared deviations of each lane.
struct LaneMoments {
  std::vector<double> count, mean, squares;
  explicit LaneMoments(int64_t lanes) : count(lanes), mean(lanes), squares(lanes) {}
};

/// Adds a block of rows: sums of differences from a value near their mean lose no digits, and that
/// of all rows so far is near.
template <typename T>
void add_block(const T* x, int64_t stride, int64_t rows, int64_t lanes, LaneMoments& moments,
               std::vector<Wide<T>>& scratch) {
  using W = Wide<T>;
  W* shift = scratch.data();
  W* sum = shift + lanes;
  W* squares = sum + lanes;
  double* counts = moments.count.data();
  double* means = moments.mean.data();
  double* all_squares = moments.squares.data();
  vectorised([=] {
    for (int64_t lane = 0; lane < lanes; ++lane) {
      shift[lane] = static_cast<W>(means[lane]);
      sum[lane] = squares[lane] = 0;
    }
    if (counts[lanes - 1] == 0) {
      for (int64_t row = 0; row < rows; ++row) {
        MPI4DL_INDEPENDENT
        for (int64_t lane = 0; lane < lanes; ++lane) sum[lane] += widen(x[row * stride + lane]);
      }
      for (int64_t lane = 0; lane < lanes; ++lane) {
        shift[lane] = sum[lane] / static_cast<W>(rows);
        sum[lane] = 0;
      }
    }
    for (int64_t row = 0; row < rows; ++row) {
      MPI4DL_INDEPENDENT
      for (int64_t lane = 0; lane < lanes; ++lane) {
        const W apart = widen(x[row * stride + lane]) - shift[lane];
        sum[lane] += apart;
        squares[lane] += apart * apart;
      }
    }
    const auto n = static_cast<double>(rows);
    MPI4DL_INDEPENDENT
    for (int64_t lane = 0; lane < lanes; ++lane) {
      const double moved = static_cast<double>(sum[lane]) / n;
      const double mean = static_cast<double>(shift[lane]) + moved;
      const double own = static_cast<double>(squares[lane]) - moved * moved * n;
      const double total = counts[lane] + n;
      const double apart = mean - means[lane];
      all_squares[lane] += own + apart * apart * (counts[lane] * n / total);
      means[lane] += apart * (n / total);
      counts[lane] = total;
    }
  });
}

template <typename T>
void add_moments(const at::Tensor& x, at::Tensor& moments) {
  const Walk<1> walk({x});
  const int64_t lanes = walk.lanes(), channels = walk.channels();
  std::vector<LaneMoments> by_thread(at::get_num_threads(), LaneMoments(lanes));
  std::vector<std::vector<Wide<T>>> scratch(by_thread.size());
  const T* data = x.data_ptr<T>();
  walk.run([&](int thread, const Table<1>& table) {
    scratch[thread].resize(3 * lanes);
    for (int64_t row = 0; row < table.rows; row += kBlock)
      add_block(data + table.offset[0] + row * table.stride[0], table.stride[0],
                std::min(kBlock, table.rows - row), table.lanes, by_thread[thread],
                scratch[thread]);
  });
  auto all = moments.accessor<double, 2>();
  for (const LaneMoments& part : by_thread)
    for (int64_t lane = 0; lane < lanes; ++lane) {
      if (part.count[lane] == 0) continue;
      auto sum = all[lane % channels];
      const double total = sum[0] + part.count[lane], apart = part.mean[lane] - sum[1];
      sum[2] += part.squares[lane] + apart * apart * (sum[0] * part.count[lane] / total);
      sum[1] += apart * (part.count[lane] / total);
      sum[0] = total;
    }
}

template <typename T>
void add_sums(const at::Tensor& x, at::Tensor& sums) {
  using W = Wide<T>;
  const Walk<1> walk({x});
  std::vector<std::vector<double>> by_thread(at::get_num_threads());
  std::vector<std::vector<W>> scratch(by_thread.size());
  const T* data = x.data_ptr<T>();
  walk.run([&](int thread, const Table<1>& table) {
    by_thread[thread].resize(walk.lanes(), 0.0);
    scratch[thread].resize(walk.lanes());
    double* all = by_thread[thread].data();
    W* sum = scratch[thread].data();
    for (int64_t first = 0; first < table.rows; first += kBlock)
      vectorised([=] {
        for (int64_t lane = 0; lane < table.lanes; ++lane) sum[lane] = 0;
        for (int64_t row = first; row < std::min(first + kBlock, table.rows); ++row) {
          const T* from = data + table.offset[0] + row * table.stride[0];
          MPI4DL_INDEPENDENT
          for (int64_t lane = 0; lane < table.lanes; ++lane) sum[lane] += widen(from[lane]);
        }
        MPI4DL_INDEPENDENT
        for (int64_t lane = 0; lane < table.lanes; ++lane)
          all[lane] += static_cast<double>(sum[lane]);
      });
  });
  double* total = sums.data_ptr<double>();
  for (const auto& part : by_thread)
    for (size_t lane = 0; lane < part.size(); ++lane) total[lane % walk.channels()] += part[lane];
}

/// The numbers of a map for each lane.
template <typename W>
struct LaneMap {
  std::vector<W> mean, scale, bias;

  template <size_t count>
  LaneMap(const Walk<count>& walk, const ChannelMap& map)
      : mean(walk.template spread<W>(map.mean)),
        scale(walk.template spread<W>(map.scale)),
        bias(walk.template spread<W>(map.bias)) {}
};

template <typename T, bool relu, typename... Addend>
void normalise_kernel(const at::Tensor& x, const ChannelMap& map, const at::Tensor& y,
                      const Addend&... addend) {
  using W = Wide<T>;
  constexpr size_t kTensors = 2 + sizeof...(Addend);
  const Walk<kTensors> walk({x, y, addend...});
  const LaneMap<W> numbers(walk, map);
  const T* source = x.data_ptr<T>();
  const std::array<const T*, sizeof...(Addend)> more{addend.template data_ptr<T>()...};
  T* target = y.data_ptr<T>();
  walk.run([&](int, const Table<kTensors>& table) {
    const W *mean = numbers.mean.data(), *scale = numbers.scale.data(), *bias = numbers.bias.data();
    vectorised([=] {
      for (int64_t row = 0; row < table.rows; ++row) {
        const T* from = source + table.offset[0] + row * table.stride[0];
        T* to = target + table.offset[1] + row * table.stride[1];
        const T* other = nullptr;
        if constexpr (kTensors == 3) other = more[0] + table.offset[2] + row * table.stride[2];
        MPI4DL_INDEPENDENT
        for (int64_t lane = 0; lane < table.lanes; ++lane) {
          W value = (widen(from[lane]) - mean[lane]) * scale[lane] + bias[lane];
          if constexpr (kTensors == 3) value += widen(other[lane]);
          to[lane] = narrow_to<T>(relu && value < 0 ? W{0} : value);
        }
      }
    });
  });
}

template <typename T, bool relu>
void add_gradient_sums(const at::Tensor& dy, const at::Tensor& x, const ChannelMap& map,
                       at::Tensor& sums) {
  using W = Wide<T>;
  const Walk<2> walk({dy, x});
  const int64_t lanes = walk.lanes();
  const LaneMap<W> numbers(walk, map);
  std::vector<std::vector<double>> by_thread(at::get_num_threads());
  std::vector<std::vector<W>> scratch(by_thread.size());
  const T* gradient = dy.data_ptr<T>();
  const T* input = x.data_ptr<T>();
  walk.run([&](int thread, const Table<2>& table) {
    by_thread[thread].resize(2 * lanes, 0.0);
    scratch[thread].resize(2 * lanes);
    double *all = by_thread[thread].data(), *all_xhat = all + lanes;
    W *sum = scratch[thread].data(), *sum_xhat = sum + lanes;
    const W *mean = numbers.mean.data(), *scale = numbers.scale.data(), *bias = numbers.bias.data();
    for (int64_t first = 0; first < table.rows; first += kBlock)
      vectorised([=] {
        for (int64_t lane = 0; lane < table.lanes; ++lane) sum[lane] = sum_xhat[lane] = 0;
        for (int64_t row = first; row < std::min(first + kBlock, table.rows); ++row) {
          const T* dys = gradient + table.offset[0] + row * table.stride[0];
          const T* xs = input + table.offset[1] + row * table.stride[1];
          MPI4DL_INDEPENDENT
          for (int64_t lane = 0; lane < table.lanes; ++lane) {
            const W apart = widen(xs[lane]) - mean[lane];
            const bool open = !relu || apart * scale[lane] + bias[lane] > 0;
            const W given = widen(dys[lane]);  // in any case, for the sake of vectors
            const W value = open ? given : W{0};
            sum[lane] += value;
            sum_xhat[lane] += value * apart;
          }
        }
        MPI4DL_INDEPENDENT
        for (int64_t lane = 0; lane < table.lanes; ++lane) {
          all[lane] += static_cast<double>(sum[lane]);
          all_xhat[lane] += static_cast<double>(sum_xhat[lane]);
        }
      });
  });
  const int64_t channels = walk.channels();
  double *total = sums.data_ptr<double>(), *total_xhat = total + channels;
  for (const auto& part : by_thread)
    for (int64_t lane = 0; lane < lanes && !part.empty(); ++lane) {
      total[lane % channels] += part[lane];
      total_xhat[lane % channels] += part[lanes + lane];
    }
  for (int64_t channel = 0; channel < channels; ++channel)
    total_xhat[channel] *= map.inverse_deviation[channel];
}

template <typename T, bool relu>
void backward_kernel(const at::Tensor& dy, const at::Tensor& x, const ChannelMap& map,
                     const GradientMeans* means, const at::Tensor& dx) {
  using W = Wide<T>;
  const Walk<3> walk({dy, x, dx});
  const LaneMap<W> numbers(walk, map);
  Numbers correction(walk.channels()), correction_apart(walk.channels());
  for (int64_t channel = 0; means != nullptr && channel < walk.channels(); ++channel) {
    correction[channel] = means->gradient[channel] * map.scale[channel];
    correction_apart[channel] =
        means->with_xhat[channel] * map.scale[channel] * map.inverse_deviation[channel];
  }
  const std::vector<W> constant = walk.template spread<W>(correction),
                       slope = walk.template spread<W>(correction_apart);
  const T* gradient = dy.data_ptr<T>();
  const T* input = x.data_ptr<T>();
  T* target = dx.data_ptr<T>();
  walk.run([&](int, const Table<3>& table) {
    const W *mean = numbers.mean.data(), *scale = numbers.scale.data(), *bias = numbers.bias.data(),
            *minus = constant.data(), *per_apart = slope.data();
    vectorised([=] {
      for (int64_t row = 0; row < table.rows; ++row) {
        const T* dys = gradient + table.offset[0] + row * table.stride[0];
        const T* xs = input + table.offset[1] + row * table.stride[1];
        T* to = target + table.offset[2] + row * table.stride[2];
        MPI4DL_INDEPENDENT
        for (int64_t lane = 0; lane < table.lanes; ++lane) {
          const W apart = widen(xs[lane]) - mean[lane];
          const bool open = !relu || apart * scale[lane] + bias[lane] > 0;
          const W given = widen(dys[lane]);  // in any case, for the sake of vectors
          const W value = open ? given : W{0};
          to[lane] = narrow_to<T>(value * scale[lane] - (minus[lane] + per_apart[lane] * apart));
        }
      }
    });
  });
}

/// Without a second call of libtorch to write them.
at::Tensor zeros(at::IntArrayRef shape) {
  at::Tensor numbers = at::empty(shape, at::kDouble);
  std::fill_n(numbers.data_ptr<double>(), numbers.numel(), 0.0);
  return numbers;
}

}  // namespace

Numbers numbers_of(const at::Tensor& vector) {
  Numbers numbers(vector.numel());
  const auto copy = [&](const auto* values) {
    std::copy_n(values, numbers.size(), numbers.begin());
  };
  if (vector.is_cpu() && vector.is_contiguous() && vector.scalar_type() == at::kFloat) {
    copy(vector.data_ptr<float>());
  } else {
    copy(vector.to(at::TensorOptions(at::kCPU).dtype(at::kDouble)).contiguous().data_ptr<double>());
  }
  return numbers;
}

at::Tensor channel_moments(const at::Tensor& x) {
  RECORD_USER_SCOPE("mpi4dl::channel_moments");
  if (!suited(x)) return composed::channel_moments(x);
  at::Tensor moments = zeros({x.size(1), 3});
  if (x.numel() > 0) by_type(x, [&]<typename T>(T) { add_moments<T>(x, moments); });
  return moments;
}

at::Tensor channel_sums(const at::Tensor& x) {
  RECORD_USER_SCOPE("mpi4dl::channel_sums");
  if (!suited(x)) return composed::channel_sums(x);
  at::Tensor sums = zeros({x.size(1)});
  if (x.numel() > 0) by_type(x, [&]<typename T>(T) { add_sums<T>(x, sums); });
  return sums;
}

void normalise(const at::Tensor& x, const ChannelMap& map, const at::Tensor& addend,
               const at::Tensor& y) {
  RECORD_USER_SCOPE("mpi4dl::normalise");
  if (!suited(x, y) || (addend.defined() && !suited(x, addend)))
    return composed::normalise(x, map, addend, y);
  if (x.numel() == 0) return;
  by_type(x, [&]<typename T>(T) {
    const auto run = [&](const auto&... sum) {
      map.relu ? normalise_kernel<T, true>(x, map, y, sum...)
               : normalise_kernel<T, false>(x, map, y, sum...);
    };
    addend.defined() ? run(addend) : run();
  });
}

at::Tensor gradient_sums(const at::Tensor& dy, const at::Tensor& x, const ChannelMap& map) {
  RECORD_USER_SCOPE("mpi4dl::gradient_sums");
  if (!suited(x, dy)) return composed::gradient_sums(dy, x, map);
  at::Tensor sums = zeros({2, x.size(1)});
  if (x.numel() == 0) return sums;
  by_type(x, [&]<typename T>(T) {
    map.relu ? add_gradient_sums<T, true>(dy, x, map, sums)
             : add_gradient_sums<T, false>(dy, x, map, sums);
  });
  return sums;
}

void normalise_backward(const at::Tensor& dy, const at::Tensor& x, const ChannelMap& map,
                        const GradientMeans* means, const at::Tensor& dx) {
  RECORD_USER_SCOPE("mpi4dl::normalise_backward");
  if (!suited(x, dy, dx)) return composed::normalise_backward(dy, x, map, means, dx);
  if (x.numel() == 0) return;
  by_type(x, [&]<typename T>(T) {
    map.relu ? backward_kernel<T, true>(dy, x, map, means, dx)
             : backward_kernel<T, false>(dy, x, map, means, dx);
  });
}

}  // namespace mpi4dl
