#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "geometry/box.hpp"
#include "geometry/window.hpp"
#include "graph/parameter.hpp"
#include "graph/shape.hpp"

namespace mpi4dl {

// An operator is defined once: a struct of options, in a header of its own under graph/operators/,
// with members that say all that is known without running it. The concept below lists them, and
// every alternative of Operator must satisfy it, so a member that was forgotten does not compile.
// How an operator runs stands in the file of the same name under execute/operators/.

/// Says how an operator goes over the pixels with a kernel, and what it reads beyond the edge of
/// the image.
enum class WindowRule {
  none,        ///< it has no kernel
  transposed,  ///< each pixel of the input writes a window of the output
  zeros,       ///< reads zeros, which may lie around its input in memory
  applied,     ///< reads something else (-inf, true counts), which it applies itself
};

/// Says how the parts come together that tiles contribute to a result in one place, as one without
/// spatial extent always is.
enum class Pooling {
  none,       ///< tiles contribute no parts: the operator runs where the result is
  reduction,  ///< it reduces them itself
  messages,   ///< they travel to the result, and are added there
};

/// Holds what a definition must say: a member without a default, so that one that is left out does
/// not compile.
template <typename T>
class Stated {
 public:
  constexpr Stated(T value) : value_(value) {}  // as if it were the value
  constexpr operator T() const { return value_; }

 private:
  T value_;
};

struct Properties {
  /// It reads only the pixel, of each input, that it writes.
  Stated<bool> pointwise;
  /// It talks to other ranks: those with nothing to compute must join in too.
  Stated<bool> collective;
  Stated<Pooling> pooling;
  /// It can begin before the halo of its input has come.
  Stated<bool> overlaps_halo;
  Stated<WindowRule> window;
  /// Ends a sentence about several inputs, which "cannot be added"; where it is empty, the operator
  /// "cannot read" them.
  std::string_view combined = {};
};

/// Says which rows (or columns) of a result are wanted, along one spatial axis.
struct Rows {
  int axis = 0;
  Interval outputs;
  int64_t length = 0;  ///< of the input along that axis
};

/// NodeWork is a part of a node's work: so many positions of its result.
struct NodeWork {
  const Shape& input;  ///< of the first input
  const Shape& result;
  int64_t inputs = 1;
  int64_t pixels = 0;

  int64_t elements() const { return result.channels * pixels; }
};

/// Says what the memory model knows of a node on one rank. Boxes are in global coordinates.
struct TilePlacement {
  Box needed, computed, owned;  ///< of its first input; of its result
  int64_t element_size = 4;
  int64_t weight_bytes = 0;     ///< of its parameters but statistics
  int64_t parameter_bytes = 0;  ///< of those that are trained, and of their gradients
  bool framed = false;          ///< its input lies in a halo buffer, with the padding around it
  bool composed = false;        ///< libtorch's operators compute it, as they do on a device

  int64_t bytes(const Box& box) const { return box.elements() * element_size; }
  /// Returns the bytes of such a box in the type of sums: no half type.
  int64_t wide_bytes(const Box& box) const {
    return box.elements() * std::max<int64_t>(element_size, sizeof(float));
  }
  /// Returns whether the kernels for images compute it.
  bool by_image_kernels() const { return computed.axes() == 4 && !composed; }
};

/// Says what memory an operator's forward takes.
struct ForwardMemory {
  enum class Output {
    fresh,        ///< new memory
    halo_buffer,  ///< straight into the halo buffer where there is one
    input,        ///< the input itself
  };
  Output output = Output::fresh;
  bool keeps_input = false, keeps_output = false;  ///< for backward
  int64_t kept_bytes = 0;                          ///< of its own, for backward
  int64_t workspace_bytes = 0;                     ///< freed when it is done
};

/// Says what memory an operator's backward takes.
struct BackwardMemory {
  enum class Input {
    fresh,     ///< new memory for the gradient of the first input, `input_bytes`
    gradient,  ///< the gradient of the output itself, for each input
    in_place,  ///< it overwrites the gradient of the output if nobody else has that
  };
  Input input = Input::fresh;
  int64_t input_bytes = 0;
  bool gaps = false;         ///< between the rows of that memory
  bool wants_dense = false;  ///< a gradient with gaps is copied first
  int64_t workspace_bytes = 0;
  int64_t parameter_bytes = 0;  ///< gradients of parameters before they are added up
  bool input_last = false;      ///< what was kept is freed before the gradient of the input is made
};

/// Names an option of an operator in the text form of a graph.
template <typename Op, typename T>
struct Field {
  std::string_view name;
  T Op::* member;
};
template <typename Op, typename T>  // which clang deduces by itself since version 17
Field(std::string_view, T Op::*) -> Field<Op, T>;

/// Names a value of an option that is one of a few.
template <typename E>
struct Word {
  std::string_view name;
  E value;
};
template <typename E>
Word(std::string_view, E) -> Word<E>;
/// Lists the values of such an option, in their order; each type has its own.
template <typename E>
constexpr std::array<Word<E>, 0> kWords{};

/// kWritable is true where an option is none of a few values, or these are listed.
template <typename T>
constexpr bool kWritable = true;
template <typename E>
  requires std::is_enum_v<E>
constexpr bool kWritable<E> = !kWords<E>.empty();

template <typename Op, typename... T>
constexpr bool all_writable(const std::tuple<Field<Op, T>...>& /*fields*/) {
  return (kWritable<T> && ...);
}

/// Stands for a value of any type where a struct is counted.
struct AnyValue {
  template <typename T>
  operator T() const;
};

/// Returns whether a struct has at least so many members.
template <typename Op, size_t... index>
constexpr bool has_members(std::index_sequence<index...> /*count*/) {
  return requires { Op{(static_cast<void>(index), AnyValue{})...}; };
}

/// NamesItsFields is true of an operator that names all of its options.
template <typename Op>
concept NamesItsFields =
    has_members<Op>(std::make_index_sequence<std::tuple_size_v<decltype(Op::kFields)>>()) &&
    !has_members<Op>(std::make_index_sequence<std::tuple_size_v<decltype(Op::kFields)> + 1>());

/// HasWords is true of an operator whose options can all be written as text.
template <typename Op>
concept HasWords = all_writable<Op>(Op::kFields);

template <typename Op>
concept Windowed = requires(const Op& op, int axis) {
  { op.window(axis) } -> std::same_as<Window>;
};

template <typename Op>
concept HasKernel = requires(const Op& op) {
  { op.kernel } -> std::same_as<const Extents&>;
};

/// HasItsWindow is true of an operator whose members are those of the window that it says to have.
template <typename Op>
concept HasItsWindow =
    HasKernel<Op> == (Op::kProperties.window != WindowRule::none) &&
    Windowed<Op> == (HasKernel<Op> && Op::kProperties.window != WindowRule::transposed);

/// PoolsTogether is true of an operator that joins in everywhere if tiles contribute to its result:
/// who has no part of that must still send, receive or reduce.
template <typename Op>
concept PoolsTogether =
    Op::kProperties.pooling == Pooling::none || static_cast<bool>(Op::kProperties.collective);

template <typename Op>
concept OperatorDefinition =
    requires(const Op& op, const Shapes& inputs, const Rows& rows, const NodeWork& work,
             const TilePlacement& place) {
      { Op::kName } -> std::convertible_to<std::string_view>;
      { Op::kProperties } -> std::convertible_to<const Properties&>;
      { op.result(inputs) } -> std::same_as<Shape>;
      { op.need(rows) } -> std::same_as<Interval>;
      { op.parameters(inputs) } -> std::same_as<std::vector<Parameter>>;
      { op.flops(work) } -> std::same_as<int64_t>;
      { op.forward_memory(place) } -> std::same_as<ForwardMemory>;
      { op.backward_memory(place) } -> std::same_as<BackwardMemory>;
    } &&
    HasItsWindow<Op> && PoolsTogether<Op> && NamesItsFields<Op> && HasWords<Op>;

// What several definitions share.

/// Returns the option of one axis; `otherwise` where none was given.
inline int64_t option_at(const Extents& values, int axis, int64_t otherwise) {
  return values.empty() ? otherwise : values[axis];
}
/// Returns the option of all axes, likewise.
inline Extents option_of_all(const Extents& values, size_t axes, int64_t otherwise) {
  return values.empty() ? Extents(axes, otherwise) : values;
}

/// Returns by how much the padding at the end of an axis is wider than that at its beginning; where
/// it has no option of its own, they are the same.
inline int64_t wider_end(const Extents& padding, const Extents& padding_end, int axis) {
  return padding_end.empty() ? 0 : padding_end[axis] - option_at(padding, axis, 0);
}

/// Divides and rounds down, negative numerators too; the divisor is positive.
constexpr int64_t floor_divide(int64_t a, int64_t b) {
  return a / b - (a % b < 0 ? 1 : 0);
}
constexpr int64_t ceil_divide(int64_t a, int64_t b) {
  return -floor_divide(-a, b);
}

/// Returns the windows of all axes.
template <Windowed Op>
std::vector<Window> all_windows(const Op& op, size_t axes) {
  std::vector<Window> result;
  for (size_t axis = 0; axis < axes; ++axis) result.push_back(op.window(static_cast<int>(axis)));
  return result;
}

/// Describes a backward that makes the gradient of the input, in memory of its own, and those of
/// the parameters.
inline BackwardMemory fresh_gradient(const TilePlacement& place) {
  return {.input_bytes = place.bytes(place.needed), .parameter_bytes = place.parameter_bytes};
}

/// Returns how many windows fit along each axis of the input; throws where none does.
Extents slide(const std::vector<Window>& windows, const Shape& input, const Extents& kernel,
              bool ceil_mode = false);

/// Counts the elements of a window operator's input with its padding.
int64_t padded_elements(const std::vector<Window>& windows, const TilePlacement& place);
/// Returns true where the padding is the same on both sides of each axis, so that libtorch can
/// apply it.
bool symmetric(const std::vector<Window>& windows, const TilePlacement& place);

/// Throws unless the paddings of a window fit the axes.
void check_paddings(const Extents& padding, const Extents& padding_end, const Shape& input);
/// Throws where a window could lie in the padding alone, with nothing to pool.
void check_pool_padding(const Extents& kernel, const Extents& padding);

/// Returns the shape of a pooling's result.
template <Windowed Op>
Shape pooled(const Op& op, const Shapes& inputs) {
  const Shape& input = only_spatial(inputs);
  check_kernel(op.kernel, input);
  check_option("stride", op.stride, 1, input);
  check_paddings(op.padding, op.padding_end, input);
  check_pool_padding(op.kernel, op.padding);
  check_pool_padding(op.kernel, op.padding_end);
  return {input.channels,
          slide(all_windows(op, input.space.size()), input, op.kernel, op.ceil_mode)};
}

}  // namespace mpi4dl
