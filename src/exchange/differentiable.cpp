#include "exchange/differentiable.hpp"

#include <torch/csrc/autograd/custom_function.h>

namespace mpi4dl {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// What backward needs to know, in the form that autograd carries along.
struct Ends : torch::CustomClassHolder {
  Ends(std::shared_ptr<const Redistribution> plan, const Box& owned, const Box& needed)
      : plan(std::move(plan)), owned(owned), needed(needed) {}

  Patch zeros(const Box& box, c10::ScalarType type) const {
    Patch patch = make_patch(plan->comm(), box, type);
    patch.data.zero_();
    return patch;
  }

  std::shared_ptr<const Redistribution> plan;
  Box owned, needed;
};

struct RedistributeFunction : torch::autograd::Function<RedistributeFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& values,
                            const c10::intrusive_ptr<Ends>& ends) {
    context->saved_data["ends"] = at::IValue::make_capsule(ends);
    const Patch to = ends->zeros(ends->needed, values.scalar_type());
    ends->plan->run({ends->owned, values}, to);
    return to.data;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto holder = context->saved_data["ends"].toCapsule();
    const Ends& ends = static_cast<const Ends&>(*holder);
    const Patch from = ends.zeros(ends.owned, gradients[0].scalar_type());
    ends.plan->run_adjoint({ends.needed, gradients[0]}, from);
    return {from.data, at::Tensor()};
  }
};

}  // namespace

at::Tensor redistribute(const at::Tensor& values, const Box& owned, const Box& needed,
                        std::shared_ptr<const Redistribution> plan) {
  return RedistributeFunction::apply(values,
                                     c10::make_intrusive<Ends>(std::move(plan), owned, needed));
}

}  // namespace mpi4dl
