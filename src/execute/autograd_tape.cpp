#include "execute/autograd_tape.hpp"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include "execute/recording.hpp"

namespace mpi4dl {
namespace {

class AutogradTape : public Tape {
 public:
  using Function = std::function<at::Tensor(const std::vector<at::Tensor>&)>;

  AutogradTape(const TileRun& run, const Function& function) {
    const Recording recording;
    leaves_.push_back(run.inputs[0].data.detach().requires_grad_());
    for (size_t i = 0; i < run.parameters.size(); ++i)
      leaves_.push_back(run.parameters[i].detach().requires_grad_(run.trains(i)));
    output_ = function(leaves_);
  }

  at::Tensor output() const { return output_.detach(); }

  Gradients backward(const at::Tensor& gradient) override {
    std::vector<at::Tensor> wanted;
    for (const at::Tensor& leaf : leaves_)
      if (leaf.requires_grad()) wanted.push_back(leaf);
    const auto found = torch::autograd::grad({output_}, wanted, {gradient});
    Gradients result{{found[0]}, {}};
    size_t next = 1;
    for (size_t i = 1; i < leaves_.size(); ++i)
      result.parameters.push_back(leaves_[i].requires_grad() ? found[next++] : at::Tensor());
    return result;
  }

 private:
  std::vector<at::Tensor> leaves_;
  at::Tensor output_;
};

}  // namespace

TileResult run_recorded(const TileRun& run,
                        const std::function<at::Tensor(const std::vector<at::Tensor>&)>& function) {
  auto tape = std::make_unique<AutogradTape>(run, function);
  at::Tensor output = tape->output();
  return {std::move(output), std::move(tape)};
}

}  // namespace mpi4dl
