// Runs all other operators of the device: those of the CPU, on the bytes behind the tensors.
// libtorch's own at::native::cpu_fallback will not do: it copies, and so loses what an operator
// writes into running statistics and through views.
#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "memory/memory_meter.hpp"
#include "support/simulated_device.hpp"
#include "support/simulated_device/counting.hpp"
#include "support/simulated_device/host_views.hpp"
#include "support/simulated_device/libtorch.hpp"
#include "support/simulated_device/waits.hpp"

namespace mpi4dl::simulated {
namespace {

using Stack = torch::jit::Stack;

/// Says what an operator does with an argument. A view has the memory of its argument, and does
/// not look at it.
enum class Use { views, reads, writes };

/// Their schemas do not say that they update the running statistics.
bool writes_silently(const std::string& name, size_t argument, c10::ArrayRef<c10::IValue> given) {
  if (name == "aten::native_batch_norm")
    return (argument == 3 || argument == 4) && given[5].toBool();
  return name == "aten::batch_norm_update_stats" && (argument == 1 || argument == 2);
}

bool is_written(const c10::AliasInfo& alias) {
  return alias.isWrite() || std::ranges::any_of(alias.containedTypes(), is_written);
}

Use use_of(const c10::FunctionSchema& schema, size_t argument, c10::ArrayRef<c10::IValue> given) {
  if (const c10::AliasInfo* alias = schema.arguments()[argument].alias_info())
    return is_written(*alias) ? Use::writes : Use::views;
  return writes_silently(schema.name(), argument, given) ? Use::writes : Use::reads;
}

/// The size of what these return depends on values, which the host waits for.
bool size_depends_on_values(const std::string& name) {
  constexpr std::array<std::string_view, 8> kNames{
      "aten::nonzero",    "aten::masked_select",      "aten::_unique",  "aten::_unique2",
      "aten::unique_dim", "aten::unique_consecutive", "aten::bincount", "aten::repeat_interleave"};
  return std::ranges::find(kNames, name) != kNames.end();
}

bool is_mask(const c10::IValue& value) {
  if (!value.isTensor() || !value.toTensor().defined()) return false;
  const auto dtype = value.toTensor().scalar_type();
  return dtype == at::kBool || dtype == at::kByte;
}

/// A mask is expanded to as many indices as are set, unless one value is for all of them.
bool expands_mask(const std::string& name, c10::ArrayRef<c10::IValue> given) {
  return name == "aten::_index_put_impl_" && given[2].toTensor().numel() != 1 &&
         std::ranges::any_of(given[1].toListRef(), is_mask);
}

/// Is one call of an operator.
class Call {
 public:
  Call(const c10::OperatorHandle& op, Stack& stack)
      : op_(op), stack_(stack), name_(op.schema().name()) {}

  void run() {
    prepare_arguments();
    const Agent stream = current_stream();
    const bool waits = size_depends_on_values(name_) || expands_mask(name_, arguments());
    const Moment when = begin(stream);
    compute();
    for (const at::Tensor& changed : views_.follow())
      if (changed.numel() > 0) wrote(when, touch(changed, Access::writes));
    const bool has_values = return_results();
    for (const c10::Storage& made : views_.made()) wrote(when, touch(made, Access::writes));
    if (waits || has_values) {
      ++counting().copies_out;
      counting().bytes_out += has_values ? element_size_ : static_cast<int64_t>(sizeof(int64_t));
      host_waits_for(Order::instance().after(stream));
    }
  }

 private:
  size_t first(size_t count) const { return stack_.size() - count; }
  c10::ArrayRef<c10::IValue> arguments() const {
    return torch::jit::last(stack_, op_.schema().arguments().size());
  }

  Agent current_stream() const {
    const c10::impl::VirtualGuardImpl guard(c10::DeviceType::PrivateUse1);
    return agent_of(guard.getStream(device_));
  }

  void be_on(c10::Device device) {
    if (!device_.has_index()) device_ = device;
    TORCH_CHECK(device_ == device, "Expected all tensors to be on the same device, but ", name_,
                " was given ", device_, " and ", device);
  }

  at::Tensor on_host(const at::Tensor& tensor, Use use) {
    if (!tensor.defined()) return tensor;
    // A number beside tensors is an argument of a kernel, wherever it is.
    if (tensor.is_cpu() && tensor.dim() == 0 && use == Use::reads) return tensor;
    be_on(tensor.device());
    is_view_ = is_view_ || use == Use::views;
    if (use != Use::views && tensor.numel() > 0)
      touches_.push_back(touch(tensor, use == Use::reads ? Access::reads : Access::writes));
    element_size_ = static_cast<int64_t>(tensor.element_size());
    if (convolves_ && !tensor.is_non_overlapping_and_dense()) ++counting().gaps;
    return views_.of(tensor);
  }

  /// Looks for the device first, so that tensors elsewhere are what is wrong.
  void find_device(const c10::IValue& value) {
    if (value.isTensor() && value.toTensor().defined() &&
        value.toTensor().device().type() == device_.type() && !device_.has_index())
      device_ = value.toTensor().device();
    else if (value.isList())
      for (const c10::IValue& element : value.toListRef()) find_device(element);
  }

  void prepare(c10::IValue& value, Use use) {
    if (value.isTensor()) {
      value = on_host(value.toTensor(), use);
    } else if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(on_host(tensor, use));
      value = list;
    } else if (value.isOptionalTensorList()) {
      c10::List<Optional<at::Tensor>> list;
      for (const Optional<at::Tensor> tensor : value.toOptionalTensorList())
        list.push_back(tensor ? Optional<at::Tensor>(on_host(*tensor, use)) : tensor);
      value = list;
    } else if (value.isDevice() && value.toDevice().type() == device_.type()) {
      const c10::Device asked = value.toDevice();
      be_on(asked.has_index() ? asked : c10::impl::VirtualGuardImpl(asked.type()).getDevice());
      value = c10::Device(c10::DeviceType::CPU);
    }
  }

  void prepare_arguments() {
    const size_t count = op_.schema().arguments().size();
    for (const c10::IValue& value : arguments()) find_device(value);
    const std::vector<c10::IValue> given = arguments().vec();
    for (size_t i = 0; i < count; ++i)
      prepare(stack_[first(count) + i], use_of(op_.schema(), i, given));
    if (!device_.has_index()) device_ = c10::impl::VirtualGuardImpl(device_.type()).getDevice();
  }

  Moment begin(Agent stream) {
    if (touches_.empty() && is_view_) return {};
    ++counting().operators;
    return Order::instance().run(stream, name_, touches_);
  }

  void compute() {
    const UnmeteredSection unmetered;  // what the host allocates for it, no device would
    op_.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack_);
  }

  void wrote(const Moment& when, const Touch& touch) {
    Order::instance().wrote(when, name_, touch);
  }

  /// Returns whether there are values among them that the host has waited for.
  bool return_results() {
    const size_t count = op_.schema().returns().size();
    bool has_values = false;
    for (size_t i = first(count); i < stack_.size(); ++i) {
      c10::IValue& value = stack_[i];
      if (value.isTensor()) {
        value = views_.back(value.toTensor(), device_);
      } else if (value.isTensorList()) {
        c10::List<at::Tensor> list;
        for (const at::Tensor& tensor : value.toTensorVector())
          list.push_back(views_.back(tensor, device_));
        value = list;
      } else {
        has_values = has_values || !value.isNone();
      }
    }
    return has_values;
  }

  const c10::OperatorHandle& op_;
  Stack& stack_;
  const std::string& name_;
  c10::Device device_{c10::DeviceType::PrivateUse1};
  HostViews views_;
  std::vector<Touch> touches_;
  int64_t element_size_ = 0;
  bool is_view_ = false;
  bool convolves_ = name_ == "aten::convolution" || name_ == "aten::convolution_backward";
};

void run_on_cpu(const c10::OperatorHandle& op, Stack* stack) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  Call(op, *stack).run();
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&run_on_cpu>());
}

// libtorch would send them to an operator for backends outside of it, which the CPU does not have.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  for (const char* name : {"convolution", "convolution_backward"})
    library.impl(name, torch::CppFunction::makeFromBoxedFunction<&run_on_cpu>());
}

}  // namespace
}  // namespace mpi4dl::simulated
