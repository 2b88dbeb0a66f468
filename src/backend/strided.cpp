#include "backend/strided.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "backend/cpu/tuning.hpp"
#include "base/expects.hpp"
#include "base/memory_units.hpp"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace mpi4dl {
namespace {

#ifdef __SSE2__
constexpr bool kCanStream = true;
#else
constexpr bool kCanStream = false;
#endif

/// An axis of a copy has strides in bytes.
struct Axis {
  int64_t length, target_stride, source_stride;
};

/// A copy is nested loops over runs of contiguous bytes.
struct Loops {
  int64_t run_bytes = 0;
  std::array<Axis, Box::kMaxAxes> axes{};  // innermost first
  int depth = 0;
};

/// Returns the axis that is `position`-th from the inside; memory order is batch, space, channels.
int axis_from_inside(int axes, int position) {
  if (axes <= 2) return axes - 1 - position;
  if (position == 0) return 1;
  return position == axes - 1 ? 0 : axes - position;
}

/// Axes that are contiguous in both join the run, the others become loops.
Loops plan_loops(const Strided& target, const Strided& source) {
  const auto width = static_cast<int64_t>(c10::elementSize(target.type));
  Loops loops{.run_bytes = width};
  for (int position = 0; position < target.axes; ++position) {
    const int axis = axis_from_inside(target.axes, position);
    const Axis next{target.shape[axis], target.stride[axis] * width, source.stride[axis] * width};
    if (next.length == 1) continue;
    if (loops.depth == 0 && next.target_stride == loops.run_bytes &&
        next.source_stride == loops.run_bytes)
      loops.run_bytes *= next.length;
    else
      loops.axes[loops.depth++] = next;
  }
  return loops;
}

/// Lines that this core will not read soon are written past its caches: fetching them first, only
/// to overwrite them, would cost more than the copy.
bool worth_streaming(const Axis& axis, const std::byte* target, int64_t bytes) {
  const auto aligned = [](int64_t number) { return number % kCacheLine == 0; };
  return kCanStream && axis.length * bytes >= kTuning.streamed_bytes && aligned(bytes) &&
         aligned(axis.target_stride) && aligned(reinterpret_cast<int64_t>(target));
}

void stream(std::byte* target, const std::byte* source, int64_t bytes) {
#ifdef __SSE2__
  for (int64_t at = 0; at < bytes; at += static_cast<int64_t>(sizeof(__m128i)))
    _mm_stream_si128(reinterpret_cast<__m128i*>(target + at),
                     _mm_loadu_si128(reinterpret_cast<const __m128i*>(source + at)));
#else
  std::memcpy(target, source, bytes);
#endif
}

void finish_streaming() {
#ifdef __SSE2__
  _mm_sfence();
#endif
}

/// The second-level cache takes more lines at a time than the first.
void fetch(const std::byte* row, int64_t bytes) {
  constexpr int kForReading = 0, kIntoSecondCache = 2;
  for (int64_t at = 0; at < bytes; at += kCacheLine)
    __builtin_prefetch(row + at, kForReading, kIntoSecondCache);
}

/// Copies words from the start on; the last word ends where the run ends and may overlap the one
/// before.
template <typename Word>
void copy_words(std::byte* target, const std::byte* source, int64_t bytes) {
  constexpr int64_t kWord = sizeof(Word);
  const auto copy_word = [&](int64_t at) { std::memcpy(target + at, source + at, kWord); };
  for (int64_t at = 0; at + kWord < bytes; at += kWord) copy_word(at);
  copy_word(bytes - kWord);
}

/// Calling memcpy takes longer than copying the few channels of an image's pixel.
void copy_run(std::byte* target, const std::byte* source, int64_t bytes) {
  using Long = std::array<int64_t, 2>;
  if (bytes > 2 * kCacheLine || bytes < static_cast<int64_t>(sizeof(Long))) {
    std::memcpy(target, source, bytes);
  } else {
    copy_words<Long>(target, source, bytes);
  }
}

/// Calls `run(target, source)` for each row, a pixel or a few of them. Rows of a halo's columns
/// lie a line of the image apart, so they are fetched ahead; an address behind the last row does
/// no harm.
template <typename Run>
void visit_short_rows(const Axis& axis, std::byte* target, const std::byte* source,
                      const Run& run) {
  for (int64_t row = 0; row < axis.length; ++row) {
    __builtin_prefetch(source + kTuning.rows_ahead * axis.source_stride);
    run(target, source);
    target += axis.target_stride;
    source += axis.source_stride;
  }
}

/// Calls `rows(std::integral_constant)` with the number of bytes of a run, if it is one of a pixel
/// of few channels: what is known while compiling takes one instruction. False for other runs.
template <typename Rows>
bool with_known_bytes(int64_t bytes, const Rows& rows) {
  switch (bytes) {
    case 4:
      rows(std::integral_constant<size_t, 4>{});
      return true;
    case 8:
      rows(std::integral_constant<size_t, 8>{});
      return true;
    case 12:
      rows(std::integral_constant<size_t, 12>{});
      return true;
    case 16:
      rows(std::integral_constant<size_t, 16>{});
      return true;
    case 24:
      rows(std::integral_constant<size_t, 24>{});
      return true;
    case 36:
      rows(std::integral_constant<size_t, 36>{});
      return true;
    default:
      return false;
  }
}

void copy_rows(const Axis& axis, std::byte* target, const std::byte* source, int64_t bytes) {
  const auto copy_short = [&](auto known) {
    visit_short_rows(axis, target, source, [](std::byte* to, const std::byte* from) {
      std::memcpy(to, from, decltype(known)::value);
    });
  };
  if (with_known_bytes(bytes, copy_short)) return;
  const bool streaming = worth_streaming(axis, target, bytes);
  for (int64_t row = 0; row < axis.length; ++row) {
    if (row + kTuning.rows_ahead < axis.length)
      fetch(source + kTuning.rows_ahead * axis.source_stride, bytes);
    if (streaming) {
      stream(target, source, bytes);
    } else {
      copy_run(target, source, bytes);
    }
    target += axis.target_stride;
    source += axis.source_stride;
  }
  if (streaming) finish_streaming();
}

template <typename T>
void add_run(std::byte* target, const std::byte* source, size_t bytes) {
  auto* sums = reinterpret_cast<T*>(target);
  const auto* values = reinterpret_cast<const T*>(source);
  for (size_t i = 0; i < bytes / sizeof(T); ++i) sums[i] += values[i];
}

template <typename T>
void add_rows(const Axis& axis, std::byte* target, const std::byte* source, int64_t bytes) {
  const auto add_short = [&](auto known) {
    visit_short_rows(axis, target, source, [](std::byte* to, const std::byte* from) {
      add_run<T>(to, from, decltype(known)::value);
    });
  };
  if (with_known_bytes(bytes, add_short)) return;
  for (int64_t row = 0; row < axis.length; ++row)
    add_run<T>(target + row * axis.target_stride, source + row * axis.source_stride, bytes);
}

/// Calls `rows(axis, target, source)` for the innermost axis of runs, wherever it occurs.
template <typename Rows>
void visit_rows(const Loops& loops, int level, std::byte* target, const std::byte* source,
                const Rows& rows) {
  if (level < 0) return rows(Axis{1, 0, 0}, target, source);
  const Axis& axis = loops.axes[level];
  if (level == 0) return rows(axis, target, source);
  for (int64_t i = 0; i < axis.length; ++i)
    visit_rows(loops, level - 1, target + i * axis.target_stride, source + i * axis.source_stride,
               rows);
}

bool same_shape(const Strided& a, const Strided& b) {
  return a.axes == b.axes && std::equal(a.shape.begin(), a.shape.begin() + a.axes, b.shape.begin());
}

/// Checks what callers of copy and add promise.
void expect_alike(const Strided& target, const Strided& source) {
  expects(target.type == source.type && same_shape(target, source),
          "target and source have one shape and type");
  expects(target.elements() == 0 || (target.data != nullptr && source.data != nullptr),
          "target and source are there");
}

template <typename T>
void add_all(const Loops& loops, std::byte* target, const std::byte* source) {
  visit_rows(loops, loops.depth - 1, target, source,
             [&](const Axis& axis, std::byte* to, const std::byte* from) {
               add_rows<T>(axis, to, from, loops.run_bytes);
             });
}

}  // namespace

int64_t Strided::elements() const {
  int64_t product = 1;
  for (int axis = 0; axis < axes; ++axis) product *= shape[axis];
  return product;
}

Strided strided(const Patch& patch, const Box& part) {
  patch.require(part);
  Strided view{.axes = part.axes(), .type = patch.data.scalar_type()};
  int64_t offset = 0;
  for (int axis = 0; axis < part.axes(); ++axis) {
    view.shape[axis] = part[axis].length();
    view.stride[axis] = patch.data.stride(axis);
    offset += (part[axis].begin - patch.box[axis].begin) * view.stride[axis];
  }
  view.data = static_cast<std::byte*>(patch.data.data_ptr()) +
              offset * static_cast<int64_t>(patch.data.element_size());
  return view;
}

Strided packed(std::byte* data, const Box& box, c10::ScalarType type) {
  Strided view{.data = data, .axes = box.axes(), .type = type};
  int64_t stride = 1;
  for (int position = 0; position < box.axes(); ++position) {
    const int axis = axis_from_inside(box.axes(), position);
    view.shape[axis] = box[axis].length();
    view.stride[axis] = stride;
    stride *= view.shape[axis];
  }
  return view;
}

std::vector<int64_t> packed_strides(const Box& box) {
  const Strided view = packed(nullptr, box, c10::ScalarType::Byte);
  return {view.stride.begin(), view.stride.begin() + box.axes()};
}

bool is_packed(const Strided& values) {
  int64_t expected = 1;
  for (int position = 0; position < values.axes; ++position) {
    const int axis = axis_from_inside(values.axes, position);
    if (values.shape[axis] == 1) continue;
    if (values.stride[axis] != expected) return false;
    expected *= values.shape[axis];
  }
  return true;
}

int64_t row_bytes(const Strided& values) {
  return plan_loops(values, values).run_bytes;
}

at::Tensor as_tensor(const Strided& values) {
  const auto axes = static_cast<size_t>(values.axes);
  return at::from_blob(values.data, at::IntArrayRef(values.shape.data(), axes),
                       at::IntArrayRef(values.stride.data(), axes), at::TensorOptions(values.type));
}

void copy(const Strided& target, const Strided& source) {
  expect_alike(target, source);
  if (target.elements() == 0) return;
  const Loops loops = plan_loops(target, source);
  visit_rows(loops, loops.depth - 1, target.data, source.data,
             [&](const Axis& axis, std::byte* to, const std::byte* from) {
               copy_rows(axis, to, from, loops.run_bytes);
             });
}

void add(const Strided& target, const Strided& source) {
  expect_alike(target, source);
  if (target.elements() == 0) return;
  const Loops loops = plan_loops(target, source);
  if (target.type == c10::ScalarType::Float) {
    add_all<float>(loops, target.data, source.data);
  } else if (target.type == c10::ScalarType::Double) {
    add_all<double>(loops, target.data, source.data);
  } else {
    as_tensor(target).add_(as_tensor(source));
  }
}

void clear(const Strided& target) {
  expects(target.elements() == 0 || target.data != nullptr, "the target is there");
  if (target.elements() == 0) return;
  const Loops loops = plan_loops(target, target);
  visit_rows(loops, loops.depth - 1, target.data, target.data,
             [&](const Axis& axis, std::byte* to, const std::byte*) {
               for (int64_t row = 0; row < axis.length; ++row)
                 std::memset(to + row * axis.target_stride, 0, loops.run_bytes);
             });
}

}  // namespace mpi4dl
