#include "comm/datatype.hpp"

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <algorithm>

#include "base/error.hpp"
#include "comm/check.hpp"

namespace mpi4dl {
namespace {

template <Reduction reduction>
float combine(float a, float b) {
  if constexpr (reduction == Reduction::sum) return a + b;
  if constexpr (reduction == Reduction::min) return std::min(a, b);
  return std::max(a, b);
}

template <typename Half, Reduction reduction>
void reduce_half(void* in, void* inout, int* length, MPI_Datatype* /*type*/) {
  const auto* a = static_cast<const Half*>(in);
  auto* b = static_cast<Half*>(inout);
  for (int i = 0; i < *length; ++i)
    b[i] =
        static_cast<Half>(combine<reduction>(static_cast<float>(a[i]), static_cast<float>(b[i])));
}

template <typename Half, Reduction reduction>
MPI_Op half_op() {
  static const MPI_Op op = [] {
    MPI_Op made = MPI_OP_NULL;
    mpi(MPI_Op_create(&reduce_half<Half, reduction>, /*commute=*/1, &made));
    return made;
  }();
  return op;
}

template <typename Half>
MPI_Op half_op(Reduction reduction) {
  switch (reduction) {
    case Reduction::sum:
      return half_op<Half, Reduction::sum>();
    case Reduction::min:
      return half_op<Half, Reduction::min>();
    case Reduction::max:
      return half_op<Half, Reduction::max>();
  }
  throw Error("unknown reduction");
}

struct Moments {
  double count, mean, squares;
};

Moments merge(const Moments& a, const Moments& b) {
  const double count = a.count + b.count;
  if (count == 0) return a;
  const double apart = a.mean - b.mean;
  return {count, (a.count * a.mean + b.count * b.mean) / count,
          a.squares + b.squares + apart * apart * (a.count * b.count / count)};
}

void merge_moments(void* in, void* inout, int* length, MPI_Datatype* /*type*/) {
  const auto* a = static_cast<const Moments*>(in);
  auto* b = static_cast<Moments*>(inout);
  for (int i = 0; i < *length; ++i) b[i] = merge(a[i], b[i]);
}

}  // namespace

MPI_Datatype mpi_type(c10::ScalarType type) {
  switch (type) {
    case c10::ScalarType::Float:
      return MPI_FLOAT;
    case c10::ScalarType::Double:
      return MPI_DOUBLE;
    case c10::ScalarType::Long:
      return MPI_INT64_T;
    case c10::ScalarType::BFloat16:
    case c10::ScalarType::Half:
      return MPI_UINT16_T;
    default:
      break;
  }
  throw Error(
      fmt::format("tensors of type {} cannot be sent; use float32, float64, bfloat16, "
                  "float16 or int64",
                  c10::toString(type)));
}

MPI_Datatype moments_type() {
  static const MPI_Datatype type = [] {
    MPI_Datatype made = MPI_DATATYPE_NULL;
    mpi(MPI_Type_contiguous(3, MPI_DOUBLE, &made));
    mpi(MPI_Type_commit(&made));
    return made;
  }();
  return type;
}

MPI_Op moments_op() {
  static const MPI_Op op = [] {
    MPI_Op made = MPI_OP_NULL;
    mpi(MPI_Op_create(&merge_moments, /*commute=*/1, &made));
    return made;
  }();
  return op;
}

MPI_Op mpi_op(Reduction reduction, c10::ScalarType type) {
  if (type == c10::ScalarType::BFloat16) return half_op<c10::BFloat16>(reduction);
  if (type == c10::ScalarType::Half) return half_op<c10::Half>(reduction);
  switch (reduction) {
    case Reduction::sum:
      return MPI_SUM;
    case Reduction::min:
      return MPI_MIN;
    case Reduction::max:
      return MPI_MAX;
  }
  throw Error("unknown reduction");
}

}  // namespace mpi4dl
