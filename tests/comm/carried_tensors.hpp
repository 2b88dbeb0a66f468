#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "support/scoped.hpp"
#include "support/world.hpp"

namespace mpi4dl::testing {

// Tensors of every type, carried in one piece, in many, and through host memory.

struct Carriage {
  const char* name;
  int64_t max_message_bytes;
  bool stage_through_host;
};
inline const Carriage kCarriages[] = {
    {"whole", int64_t{1} << 30, false},
    {"pieces", 1001, false},  // not a multiple of any element's size
    {"staged", int64_t{1} << 30, true},
    {"staged_pieces", 1001, true}};
inline const c10::ScalarType kTypes[] = {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf,
                                         at::kLong};

class Tensors : public ::testing::TestWithParam<std::tuple<Carriage, c10::ScalarType>> {
 protected:
  c10::ScalarType type() const { return std::get<c10::ScalarType>(GetParam()); }
  const Carriage& carriage() const { return std::get<Carriage>(GetParam()); }

  /// Returns what `rank` contributes: small integers of both signs, so that sums over 9 ranks are
  /// exact in every type. It has three dimensions and an odd length.
  at::Tensor values_of(int rank) const {
    const at::Tensor index = at::arange(13 * 7 * 11, at::kLong).view({13, 7, 11});
    return (index * (rank + 1) + 3 * rank).remainder(15).sub(7).to(type());
  }

 private:
  Scoped<int64_t> bytes_{world().context().max_message_bytes, carriage().max_message_bytes};
  Scoped<bool> staged_{world().context().stage_through_host, carriage().stage_through_host};
};

inline std::string name_of(const ::testing::TestParamInfo<Tensors::ParamType>& info) {
  return std::string(std::get<Carriage>(info.param).name) + "_" +
         c10::toString(std::get<c10::ScalarType>(info.param));
}

}  // namespace mpi4dl::testing
