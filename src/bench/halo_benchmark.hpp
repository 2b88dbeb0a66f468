#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <vector>

#include "comm/session.hpp"
#include "exchange/redistribution.hpp"
#include "geometry/grid.hpp"

namespace mpi4dl {

struct HaloOptions {
  int64_t height = 8, width = 8;
  int64_t batch = 1;
  int64_t halo = 1;
  int64_t in_channels = 1;
  int64_t out_channels = 256;
  int warmup = 10;
  int iterations = 100;
  int parts = 0;  ///< 0: as many as ranks
  std::string slice_method = "square";
  std::string dtype = "float32";
  Transport transport = Transport::shared_memory;
  bool compute = false;
  bool backward = false;
  bool half_gradients = false;  ///< weight gradients travel between nodes as float16
  bool validate = false;
};

/// Holds the seconds that one rank measured, one value an iteration.
struct Timings {
  std::vector<double> exchange;    ///< our halo exchange
  std::vector<double> bare;        ///< the same bytes between the same ranks, plain MPI
  std::vector<double> adjoint;     ///< the exchange's backward
  std::vector<double> reduction;   ///< the sum of a convolution's weight gradients over ranks
  std::vector<double> sequential;  ///< exchange, then convolution
  std::vector<double> overlapped;  ///< convolution of the interior while the exchange runs
};

/// HaloBenchmark is one rank's part of the halo benchmark: a tile of an image whose every value
/// tells its global position, in a buffer padded for the halo.
class HaloBenchmark {
 public:
  HaloBenchmark(const Session& session, const HaloOptions& options);

  /// Runs everything that the options ask for, alternating with bare MPI. Collective over the
  /// world.
  Timings measure();
  /// Counts the values that are wrong after an exchange, its adjoint and the convolutions.
  /// Collective over the world.
  int64_t count_wrong();

  /// Says how weight gradients are summed, and why. Collective over the world.
  std::string describe_reduction() const;

  const Grid& grid() const { return grid_; }
  const Box& owned() const { return owned_; }
  int64_t bytes_sent() const;
  int64_t bytes_received() const;

 private:
  void fill_owned();
  void exchange() { halo_->run(tile_, buffer_); }
  void exchange_bare();
  bool sums_in_memory() const;
  void sum_weight_gradients();
  at::Tensor convolve() const;
  at::Tensor convolve_overlapped();
  Box inputs_of(const Box& outputs) const;
  int64_t wrong_halo() const;
  int64_t wrong_adjoint();
  int64_t wrong_weight_gradients();
  int64_t wrong_convolution();
  int64_t route_bytes(const std::vector<Route>& routes) const;

  const Communicator& world_;
  HaloOptions options_;
  Grid grid_;
  Box image_, owned_;
  std::vector<std::vector<Box>> needed_;  // of every rank
  Patch buffer_;                          // needed box and padding
  Patch tile_;                            // the owned part of it
  Patch gradient_;
  at::Tensor weight_, weight_gradient_;
  std::unique_ptr<Redistribution> halo_;
  // In memory as any program gets it, not from the allocator behind libtorch.
  std::vector<std::vector<std::byte>> bare_send_, bare_receive_;
};

}  // namespace mpi4dl
