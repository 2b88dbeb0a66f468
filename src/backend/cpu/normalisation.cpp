#include "backend/cpu/normalisation.hpp"

#include <ATen/ATen.h>
#include <ATen/record_function.h>

#include <span>
#include <vector>

#include "backend/channels_last.hpp"
#include "backend/cpu/by_type.hpp"
#include "backend/cpu/pixel_tables.hpp"
#include "backend/cpu/tuning.hpp"
#include "backend/cpu/vectorised.hpp"

namespace mpi4dl::cpu {
namespace {

constexpr int64_t kBlock = kTuning.block_rows;

enum Row : int64_t { kMean, kInverseDeviation, kScale, kBias };

std::span<const double> row_of(const at::Tensor& matrix, int64_t row) {
  const auto columns = static_cast<size_t>(matrix.size(1));
  return {matrix.data_ptr<double>() + row * matrix.size(1), columns};
}

std::span<const double> values(const ChannelMap& map, Row row) {
  return row_of(map.values, row);
}

/// Holds the count, mean and sum of squared deviations of some values.
struct Moments {
  double count, mean, squares;
};

/// Returns the moments of the values of both (Chan's formula).
[[gnu::always_inline]] inline Moments merged(const Moments& a, const Moments& b) {
  const double total = a.count + b.count, apart = b.mean - a.mean;
  return {total, a.mean + apart * (b.count / total),
          a.squares + (b.squares + apart * apart * (a.count * b.count / total))};
}

/// Returns a gradient as it passes a ReLU backward: zero where the map of x was not above zero.
/// Reads it in any case, so that loops become vectors.
template <bool relu, typename W>
[[gnu::always_inline]] inline W passed(W gradient, W deviation, W scale, W bias) {
  const bool open = !relu || deviation * scale + bias > 0;
  return open ? gradient : W{0};
}

/// Holds the moments of each lane.
struct LaneMoments {
  std::vector<double> count, mean, squares;
  explicit LaneMoments(int64_t lanes) : count(lanes), mean(lanes), squares(lanes) {}
};

/// Adds a block of rows: sums of differences from a value near their mean lose no digits, and the
/// mean of all rows so far is near.
template <typename T>
void add_block(const T* x, int64_t stride, int64_t rows, int64_t lanes, LaneMoments& moments,
               std::vector<Wide<T>>& scratch, InstructionSet set) {
  using W = Wide<T>;
  W* shift = scratch.data();
  W* sum = shift + lanes;
  W* squares = sum + lanes;
  double* counts = moments.count.data();
  double* means = moments.mean.data();
  double* all_squares = moments.squares.data();
  vectorised(set, [=] {
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
      const Moments block{n, static_cast<double>(shift[lane]) + moved,
                          static_cast<double>(squares[lane]) - moved * moved * n};
      const Moments all = merged({counts[lane], means[lane], all_squares[lane]}, block);
      counts[lane] = all.count;
      means[lane] = all.mean;
      all_squares[lane] = all.squares;
    }
  });
}

template <typename T>
void add_moments(const at::Tensor& x, at::Tensor& moments, InstructionSet set) {
  const Walk<1> walk({x});
  const int64_t lanes = walk.lanes(), channels = walk.channels();
  std::vector<LaneMoments> by_thread(at::get_num_threads(), LaneMoments(lanes));
  std::vector<std::vector<Wide<T>>> scratch(by_thread.size());
  const T* data = x.data_ptr<T>();
  walk.run([&](int thread, const Table<1>& table) {
    scratch[thread].resize(3 * lanes);
    for (int64_t row = 0; row < table.rows; row += kBlock)
      add_block(data + table.offset[0] + row * table.stride[0], table.stride[0],
                std::min(kBlock, table.rows - row), table.lanes, by_thread[thread], scratch[thread],
                set);
  });
  auto all = moments.accessor<double, 2>();
  for (const LaneMoments& part : by_thread)
    for (int64_t lane = 0; lane < lanes; ++lane) {
      if (part.count[lane] == 0) continue;
      auto sum = all[lane % channels];
      const Moments both =
          merged({sum[0], sum[1], sum[2]}, {part.count[lane], part.mean[lane], part.squares[lane]});
      sum[0] = both.count;
      sum[1] = both.mean;
      sum[2] = both.squares;
    }
}

template <typename T>
void add_sums(const at::Tensor& x, at::Tensor& sums, InstructionSet set) {
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
      vectorised(set, [=] {
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

/// Holds the values of a map for each lane.
template <typename W>
struct LaneMap {
  std::vector<W> mean, scale, bias;

  template <size_t count>
  LaneMap(const Walk<count>& walk, const ChannelMap& map)
      : mean(walk.template spread<W>(values(map, kMean))),
        scale(walk.template spread<W>(values(map, kScale))),
        bias(walk.template spread<W>(values(map, kBias))) {}
};

template <typename T, bool relu, typename... Residual>
void normalise_kernel(InstructionSet set, const at::Tensor& x, const ChannelMap& map,
                      const at::Tensor& y, const Residual&... residual) {
  using W = Wide<T>;
  constexpr size_t kTensors = 2 + sizeof...(Residual);
  const Walk<kTensors> walk({x, y, residual...});
  const LaneMap<W> lane_map(walk, map);
  const T* source = x.data_ptr<T>();
  const std::array<const T*, sizeof...(Residual)> more{residual.template data_ptr<T>()...};
  T* target = y.data_ptr<T>();
  walk.run([&](int, const Table<kTensors>& table) {
    const W *mean = lane_map.mean.data(), *scale = lane_map.scale.data(),
            *bias = lane_map.bias.data();
    vectorised(set, [=] {
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
                       at::Tensor& sums, InstructionSet set) {
  using W = Wide<T>;
  const Walk<2> walk({dy, x});
  const int64_t lanes = walk.lanes();
  const LaneMap<W> lane_map(walk, map);
  std::vector<std::vector<double>> by_thread(at::get_num_threads());
  std::vector<std::vector<W>> scratch(by_thread.size());
  const T* gradient = dy.data_ptr<T>();
  const T* input = x.data_ptr<T>();
  walk.run([&](int thread, const Table<2>& table) {
    by_thread[thread].resize(2 * lanes, 0.0);
    scratch[thread].resize(2 * lanes);
    double *all = by_thread[thread].data(), *all_xhat = all + lanes;
    W *sum = scratch[thread].data(), *sum_xhat = sum + lanes;
    const W *mean = lane_map.mean.data(), *scale = lane_map.scale.data(),
            *bias = lane_map.bias.data();
    for (int64_t first = 0; first < table.rows; first += kBlock)
      vectorised(set, [=] {
        for (int64_t lane = 0; lane < table.lanes; ++lane) sum[lane] = sum_xhat[lane] = 0;
        for (int64_t row = first; row < std::min(first + kBlock, table.rows); ++row) {
          const T* dys = gradient + table.offset[0] + row * table.stride[0];
          const T* xs = input + table.offset[1] + row * table.stride[1];
          MPI4DL_INDEPENDENT
          for (int64_t lane = 0; lane < table.lanes; ++lane) {
            const W apart = widen(xs[lane]) - mean[lane];
            const W value = passed<relu>(widen(dys[lane]), apart, scale[lane], bias[lane]);
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
  const auto inverse = values(map, kInverseDeviation);
  for (int64_t channel = 0; channel < channels; ++channel) total_xhat[channel] *= inverse[channel];
}

template <typename T, bool relu>
void backward_kernel(const at::Tensor& dy, const at::Tensor& x, const ChannelMap& map,
                     const at::Tensor& means, const at::Tensor& dx, InstructionSet set) {
  using W = Wide<T>;
  const Walk<3> walk({dy, x, dx});
  const LaneMap<W> lane_map(walk, map);
  std::vector<double> correction(walk.channels()), correction_apart(walk.channels());
  if (means.defined()) {
    const auto scales = values(map, kScale), inverse = values(map, kInverseDeviation);
    const auto gradients = row_of(means, 0), with_xhat = row_of(means, 1);
    for (int64_t channel = 0; channel < walk.channels(); ++channel) {
      correction[channel] = gradients[channel] * scales[channel];
      correction_apart[channel] = with_xhat[channel] * scales[channel] * inverse[channel];
    }
  }
  const std::vector<W> constant = walk.template spread<W>(correction),
                       slope = walk.template spread<W>(correction_apart);
  const T* gradient = dy.data_ptr<T>();
  const T* input = x.data_ptr<T>();
  T* target = dx.data_ptr<T>();
  walk.run([&](int, const Table<3>& table) {
    const W *mean = lane_map.mean.data(), *scale = lane_map.scale.data(),
            *bias = lane_map.bias.data(), *minus = constant.data(), *per_apart = slope.data();
    vectorised(set, [=] {
      for (int64_t row = 0; row < table.rows; ++row) {
        const T* dys = gradient + table.offset[0] + row * table.stride[0];
        const T* xs = input + table.offset[1] + row * table.stride[1];
        T* to = target + table.offset[2] + row * table.stride[2];
        MPI4DL_INDEPENDENT
        for (int64_t lane = 0; lane < table.lanes; ++lane) {
          const W apart = widen(xs[lane]) - mean[lane];
          const W value = passed<relu>(widen(dys[lane]), apart, scale[lane], bias[lane]);
          to[lane] = narrow_to<T>(value * scale[lane] - (minus[lane] + per_apart[lane] * apart));
        }
      }
    });
  });
}

/// Returns zeros without a second call of libtorch to write them.
at::Tensor zeros(at::IntArrayRef shape) {
  at::Tensor sums = at::empty(shape, at::kDouble);
  std::fill_n(sums.data_ptr<double>(), sums.numel(), 0.0);
  return sums;
}

}  // namespace

bool suited_for_normalisation(const at::Tensor& x) {
  const auto type = x.scalar_type();
  return (type == at::kFloat || type == at::kDouble || type == at::kBFloat16) &&
         is_channels_last(x);
}

at::Tensor channel_moments(const at::Tensor& x, InstructionSet set) {
  RECORD_USER_SCOPE("mpi4dl::channel_moments");
  at::Tensor moments = zeros({x.size(1), 3});
  if (x.numel() > 0)
    by_type(x.scalar_type(), [&]<typename T>(T) { add_moments<T>(x, moments, set); });
  return moments;
}

at::Tensor channel_sums(const at::Tensor& x, InstructionSet set) {
  RECORD_USER_SCOPE("mpi4dl::channel_sums");
  at::Tensor sums = zeros({x.size(1)});
  if (x.numel() > 0) by_type(x.scalar_type(), [&]<typename T>(T) { add_sums<T>(x, sums, set); });
  return sums;
}

void normalise(const at::Tensor& x, const ChannelMap& map, const at::Tensor& residual,
               const at::Tensor& y, InstructionSet set) {
  RECORD_USER_SCOPE("mpi4dl::normalise");
  if (x.numel() == 0) return;
  by_type(x.scalar_type(), [&]<typename T>(T) {
    const auto run = [&](const auto&... sum) {
      map.relu ? normalise_kernel<T, true>(set, x, map, y, sum...)
               : normalise_kernel<T, false>(set, x, map, y, sum...);
    };
    residual.defined() ? run(residual) : run();
  });
}

at::Tensor gradient_sums(const at::Tensor& dy, const at::Tensor& x, const ChannelMap& map,
                         InstructionSet set) {
  RECORD_USER_SCOPE("mpi4dl::gradient_sums");
  at::Tensor sums = zeros({2, x.size(1)});
  if (x.numel() == 0) return sums;
  by_type(x.scalar_type(), [&]<typename T>(T) {
    map.relu ? add_gradient_sums<T, true>(dy, x, map, sums, set)
             : add_gradient_sums<T, false>(dy, x, map, sums, set);
  });
  return sums;
}

void normalise_backward(const at::Tensor& dy, const at::Tensor& x, const ChannelMap& map,
                        const at::Tensor& means, const at::Tensor& dx, InstructionSet set) {
  RECORD_USER_SCOPE("mpi4dl::normalise_backward");
  if (x.numel() == 0) return;
  by_type(x.scalar_type(), [&]<typename T>(T) {
    map.relu ? backward_kernel<T, true>(dy, x, map, means, dx, set)
             : backward_kernel<T, false>(dy, x, map, means, dx, set);
  });
}

}  // namespace mpi4dl::cpu
