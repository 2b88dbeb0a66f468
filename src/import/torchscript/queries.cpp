#include "import/torchscript/queries.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>

#include "base/error.hpp"

namespace mpi4dl {
namespace {

namespace jit = torch::jit;
using c10::IValue;
using Values = std::vector<IValue>;

/// Is what code asks, and who knows the answer.
struct Query {
  std::string_view kind;
  IValue (*answer)(const Recorder& recorder, const at::Tensor& tensor, const Values& inputs);
};

IValue size(const Recorder& recorder, const at::Tensor& tensor, const Values& inputs) {
  const std::vector<int64_t> sizes = recorder.sizes(tensor);
  if (inputs.size() < 2) return sizes;
  const auto axes = static_cast<int64_t>(sizes.size());
  const int64_t axis = inputs[1].toInt();
  validate(axis >= -axes && axis < axes, "it asks for axis {} of {}", axis, axes);
  return sizes[static_cast<size_t>(axis < 0 ? axis + axes : axis)];
}
IValue axes(const Recorder& recorder, const at::Tensor& tensor, const Values& /*inputs*/) {
  return static_cast<int64_t>(recorder.sizes(tensor).size());
}
IValue length(const Recorder& recorder, const at::Tensor& tensor, const Values& /*inputs*/) {
  const std::vector<int64_t> sizes = recorder.sizes(tensor);
  validate(!sizes.empty(), "it asks for the length of a number");
  return sizes[0];
}
IValue elements(const Recorder& recorder, const at::Tensor& tensor, const Values& /*inputs*/) {
  const std::vector<int64_t> sizes = recorder.sizes(tensor);
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}
/// Values of a graph have one type, wherever they are computed.
IValue type(const Recorder& /*recorder*/, const at::Tensor& tensor, const Values& /*inputs*/) {
  return static_cast<int64_t>(tensor.scalar_type());
}
IValue device(const Recorder& /*recorder*/, const at::Tensor& /*tensor*/,
              const Values& /*inputs*/) {
  return at::Device(at::kCPU);
}
template <bool answer>
IValue always(const Recorder& /*recorder*/, const at::Tensor& /*tensor*/,
              const Values& /*inputs*/) {
  return answer;
}

constexpr std::array kQueries{Query{"aten::size", size},
                              Query{"aten::dim", axes},
                              Query{"prim::ndim", axes},
                              Query{"aten::numel", elements},
                              Query{"aten::len", length},
                              Query{"prim::dtype", type},
                              Query{"prim::device", device},
                              Query{"aten::is_floating_point", always<true>},
                              Query{"aten::is_complex", always<false>},
                              Query{"prim::is_cuda", always<false>},
                              Query{"prim::is_quantized", always<false>},
                              Query{"prim::is_sparse", always<false>},
                              Query{"prim::is_mkldnn", always<false>},
                              Query{"prim::requires_grad", always<true>}};

/// Turns tensors of one element into numbers.
constexpr std::array<std::string_view, 8> kConversions{
    "aten::Int",         "aten::Float",         "aten::Bool",           "aten::item",
    "aten::IntImplicit", "aten::FloatImplicit", "aten::ScalarImplicit", "prim::unchecked_number"};

/// Makes tensors of numbers that stand in the code or were computed from sizes.
constexpr std::array<std::string_view, 4> kNumbers{"prim::NumToTensor", "aten::tensor",
                                                   "aten::scalar_tensor", "aten::as_tensor"};

IValue convert(const jit::Node& node, const Values& inputs, const Recorder& recorder) {
  const at::Tensor number = recorder.known_number(inputs[0].toTensor());
  validate(number.defined(),
           "its code asks for a number that depends on values: branches and options that do so "
           "are a graph of their own for each image");
  jit::Stack stack{number};
  stack.insert(stack.end(), inputs.begin() + 1, inputs.end());
  node.getOperation()(stack);
  return stack.at(0);
}

}  // namespace

std::optional<IValue> query(const jit::Node& node, const Values& inputs, const Recorder& recorder) {
  if (inputs.empty() || !inputs[0].isTensor() || !recorder.is_symbolic(inputs[0]))
    return std::nullopt;
  const std::string_view kind = node.kind().toQualString();
  if (std::ranges::find(kConversions, kind) != kConversions.end())
    return convert(node, inputs, recorder);
  for (const Query& each : kQueries)
    if (each.kind == kind) return each.answer(recorder, inputs[0].toTensor(), inputs);
  return std::nullopt;
}

bool makes_tensors(const jit::Node& node, const Values& inputs) {
  const std::string_view kind = node.kind().toQualString();
  const bool tensor = std::ranges::any_of(node.outputs(), [](const jit::Value* output) {
    return output->type()->isSubtypeOf(*c10::TensorType::get());
  });
  const bool of_tensors =
      std::ranges::any_of(inputs, [](const IValue& input) { return input.isTensor(); });
  return tensor && !of_tensors && std::ranges::find(kNumbers, kind) == kNumbers.end() &&
         !kind.starts_with("prim::") && !handles_anything(node.schema());
}

}  // namespace mpi4dl
