// A training step converts no image between memory layouts: what is channels-last stays so. Every
// copy that libtorch makes is looked at.
#include <ATen/ATen.h>
#include <ATen/record_function.h>
#include <gtest/gtest.h>

#include <atomic>

#include "models/registry.hpp"
#include "support/world.hpp"
#include "verify/verification.hpp"

namespace mpi4dl {
namespace {

using testing::world;

std::atomic<int> copies = 0, conversions = 0;

bool channels_last(const at::Tensor& image) {
  return image.stride(1) == 1;
}

/// Returns true for images alone: with several channels, and more than one pixel.
bool converts(const at::Tensor& to, const at::Tensor& from) {
  return to.dim() == 4 && from.dim() == 4 && to.size(1) > 1 && to.size(2) * to.size(3) > 1 &&
         from.sizes() == to.sizes() && channels_last(to) != channels_last(from);
}

/// Looks at every copy until it ends.
class CopyWatch {
 public:
  CopyWatch() : handle_(at::addGlobalCallback(at::RecordFunctionCallback(look).needsInputs(true))) {
    copies = conversions = 0;
  }
  ~CopyWatch() { at::removeCallback(handle_); }
  CopyWatch(const CopyWatch&) = delete;
  CopyWatch& operator=(const CopyWatch&) = delete;

 private:
  static std::unique_ptr<at::ObserverContext> look(const at::RecordFunction& call) {
    if (std::string(call.name()) != "aten::copy_") return nullptr;
    const auto inputs = call.inputs();
    ++copies;
    if (converts(inputs[0].toTensor(), inputs[1].toTensor())) ++conversions;
    return nullptr;
  }

  at::CallbackHandle handle_;
};

/// Counts what so many steps convert, initial weights and the collection of results included.
int conversions_of(const ModelOptions& model, const HaloDesign& halo, int steps) {
  const Graph graph = build_model(model);
  const Grid grid = make_grid("square", world().size());
  VerificationOptions options{.batch = {.batch = 2}, .steps = steps};
  options.trainer.halo = halo;
  options.trainer.type = c10::ScalarType::Float;
  options.trainer.cells = {{0, static_cast<int>(graph.cells().size())}};
  const CopyWatch watch;
  train_in_layout(graph, Layout(world().size(), {grid}), options, world());
  EXPECT_GT(copies, 0) << "the watch is blind";
  return conversions;
}

int conversions_of_a_step(const ModelOptions& model, const HaloDesign& halo) {
  return (conversions_of(model, halo, 3) - conversions_of(model, halo, 1)) / 2;
}

/// Its head flattens 2x2 pixels, channel after channel: at most once each way.
TEST(Conversions, ResNetHasNoneBeforeItsHead) {
  const ModelOptions model{.name = "resnet", .image = {64, 64}, .depth = 29};
  const int flatten = world().rank() == 0 ? 2 : 0;
  EXPECT_LE(conversions_of_a_step(model, {}), flatten);
  EXPECT_LE(conversions_of_a_step(model, {true, 2}), flatten);
}

TEST(Conversions, AmoebaNetHasNone) {
  const ModelOptions model{
      .name = "amoebanet", .image = {128, 128}, .num_layers = 3, .num_filters = 32};
  EXPECT_EQ(conversions_of_a_step(model, {}), 0);
}

TEST(Conversions, AreSeen) {
  const CopyWatch watch;
  at::rand({2, 3, 4, 5}).contiguous(at::MemoryFormat::ChannelsLast);
  EXPECT_EQ(conversions, 1);
}

}  // namespace
}  // namespace mpi4dl
