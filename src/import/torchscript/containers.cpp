#include "import/torchscript/containers.hpp"

#include <torch/script.h>

#include <algorithm>

#include "base/error.hpp"

namespace mpi4dl {
namespace {

namespace jit = torch::jit;
using c10::IValue;
using Values = std::vector<IValue>;

IValue make_list(const jit::Node& node, const Values& inputs) {
  c10::impl::GenericList list(node.output()->type()->expect<c10::ListType>()->getElementType());
  for (const IValue& input : inputs) list.push_back(input);
  return list;
}

IValue make_dictionary(const jit::Node& node, const Values& inputs) {
  const auto type = node.output()->type()->expect<c10::DictType>();
  c10::impl::GenericDict dictionary(type->getKeyType(), type->getValueType());
  for (size_t i = 0; i + 1 < inputs.size(); i += 2)
    dictionary.insert_or_assign(inputs[i], inputs[i + 1]);
  return dictionary;
}

IValue make_tuple(const jit::Node& node, const Values& inputs) {
  const auto type = node.output()->type()->expect<c10::TupleType>();
  return type->name() ? c10::ivalue::Tuple::createNamed(inputs, type)
                      : c10::ivalue::Tuple::create(inputs);
}

Values parts_of_tuple(const IValue& tuple) {
  return tuple.toTupleRef().elements().vec();
}

Values parts_of_list(const jit::Node& node, const IValue& list) {
  Values parts = list.toList().vec();
  validate(parts.size() == node.outputs().size(), "its code takes {} parts of a list of {}",
           node.outputs().size(), parts.size());
  return parts;
}

IValue slice_of_tuple(const jit::Node& node, const IValue& tuple) {
  const Values parts = parts_of_tuple(tuple);
  const auto begin = node.i(c10::attr::beg), end = node.i(c10::attr::end);
  return c10::ivalue::Tuple::create(Values(parts.begin() + begin, parts.begin() + end));
}

IValue element_of_tuple(const Values& inputs) {
  const Values parts = parts_of_tuple(inputs[0]);
  const int64_t index = inputs[1].toInt(), size = static_cast<int64_t>(parts.size());
  return parts.at(static_cast<size_t>(index < 0 ? index + size : index));
}

IValue is_instance(const jit::Node& node, const IValue& value) {
  const c10::TypePtr type = value.type();
  return std::ranges::any_of(node.tys(c10::attr::types),
                             [&](const c10::TypePtr& each) { return type->isSubtypeOf(*each); });
}

IValue make_object(const jit::Node& node) {
  const auto type = node.output()->type()->expect<c10::ClassType>();
  return c10::ivalue::Object::create(c10::StrongTypePtr(type->compilation_unit(), type),
                                     type->numAttributes());
}

}  // namespace

std::optional<Values> handle_container(const jit::Node& node, const Values& inputs) {
  using namespace c10::prim;
  const c10::Symbol kind = node.kind();
  if (kind == ListConstruct) return Values{make_list(node, inputs)};
  if (kind == DictConstruct) return Values{make_dictionary(node, inputs)};
  if (kind == TupleConstruct) return Values{make_tuple(node, inputs)};
  if (kind == ListUnpack) return parts_of_list(node, inputs[0]);
  if (kind == TupleUnpack) return parts_of_tuple(inputs[0]);
  if (kind == TupleSlice) return Values{slice_of_tuple(node, inputs[0])};
  if (kind == TupleIndex) return Values{element_of_tuple(inputs)};
  if (kind == isinstance) return Values{is_instance(node, inputs[0])};
  if (kind == CreateObject) return Values{make_object(node)};
  if (kind == Uninitialized) return Values{IValue()};
  if (kind == unchecked_cast || kind == unchecked_unwrap_optional) return Values{inputs[0]};
  if (kind == Print || kind == c10::aten::warn) return Values{};
  return std::nullopt;
}

bool handles_anything(const c10::FunctionSchema& schema) {
  return std::ranges::any_of(schema.arguments(), [](const c10::Argument& argument) {
    return argument.type()->hasFreeVariables();
  });
}

}  // namespace mpi4dl
