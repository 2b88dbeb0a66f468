// What the order of streams lets pass, and what it refuses.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <cstdlib>

#include "support/simulated_device/fixture.hpp"
#include "support/simulated_device/libtorch.hpp"

namespace mpi4dl::simulated {
namespace {

using at::Tensor;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

using Order = SimulatedDevice;
using Frees = SimulatedDevice;
using FreesDeathTest = SimulatedDevice;

TEST_F(Order, RefusesToReadWhatAnotherStreamWrites) {
  const Tensor x = ones({4});
  EXPECT_THAT([&] { on(second, [&] { return x.sin(); }); },
              ThrowsMessage<Refused>(
                  AllOf(HasSubstr("aten::sin on stream"),
                        HasSubstr("reads what aten::fill_ on stream 0 of device 0 writes"),
                        HasSubstr("nothing orders them"))));
}

TEST_F(Order, RefusesToWriteWhatAnotherStreamReads) {
  Tensor x = ones({4});
  const c10::Event written = recorded(first_stream());
  written.block(second);
  const Tensor y = on(second, [&] { return x.sin(); });
  EXPECT_THAT(
      [&] { x.mul_(2); },
      ThrowsMessage<Refused>(HasSubstr("aten::mul on stream 0 of device 0 writes what aten::sin")));
  recorded(second).block(first_stream());
  x.mul_(2);
}

TEST_F(Order, LetsStreamsReadTheSame) {
  const Tensor x = ones({4});
  recorded(first_stream()).block(second);
  const Tensor y = on(second, [&] { return x.sin(); });
  const Tensor z = x.cos();
  recorded(second).block(first_stream());
  EXPECT_EQ((y + z).sum().item<float>(), 4 * (std::sin(1.0F) + std::cos(1.0F)));
}

TEST_F(Order, IsThatOfTheRecordingNotOfTheEvent) {
  Tensor x = ones({4});
  const c10::Event early = recorded(first_stream());
  x.add_(1);
  early.block(second);
  EXPECT_THROW(on(second, [&] { return x.sin(); }), Refused);
}

TEST_F(Order, PassesFromStreamToStream) {
  const c10::Stream third = another_stream();
  const Tensor x = ones({4});
  recorded(first_stream()).block(second);
  recorded(second).block(third);
  on(third, [&] { x.add_(1); });
  recorded(third).block(first_stream());
  EXPECT_EQ(x.sum().item<float>(), 8);
}

TEST_F(Order, OfTheHostIsThatOfAllItLaunchesLater) {
  const Tensor x = ones({4});
  wait_for(first_stream());
  on(second, [&] { x.add_(1); });
  EXPECT_THROW(x.sin(), Refused);
  EXPECT_EQ(on(second, [&] { return x[0].item<float>(); }), 2);  // the host has a value
  EXPECT_EQ(x.sum().item<float>(), 8);
}

TEST_F(Order, OfAnEventIsKnownOnceItSaysSo) {
  const Tensor x = ones({4});
  const c10::Event event = recorded(first_stream());
  EXPECT_FALSE(event.query());
  EXPECT_THROW(on(second, [&] { return x.sin(); }), Refused) << "the answer was: not yet";
  EXPECT_TRUE(event.query());
  EXPECT_TRUE(event.query());
  on(second, [&] { return x.sin(); });
  wait_for(second);
}

TEST_F(Order, OfAStreamIsKnownOnceItSaysSo) {
  const Tensor x = ones({4});
  EXPECT_FALSE(first_stream().query());
  EXPECT_TRUE(first_stream().query());
  on(second, [&] { x.add_(1); });
  EXPECT_FALSE(second.query());
  EXPECT_TRUE(second.query());
  x.add_(1);
}

TEST_F(Order, IsThatOfBytesNotOfTensors) {
  const Tensor x = ones({6, 8});
  wait_for(first_stream());
  Tensor left = x.slice(1, 0, 3), right = x.slice(1, 3), middle = x.slice(1, 2, 4);
  left.add_(1);
  on(second, [&] { right.add_(1); });
  EXPECT_THROW(middle.add_(1), Refused);
  EXPECT_THROW(on(second, [&] { middle.add_(1); }), Refused);
  x.slice(1, 0, 3).slice(0, 2).add_(1);
  wait_for(second);
  middle.add_(1);
}

TEST_F(Order, IsNotBrokenByViews) {
  const Tensor x = ones({4, 4});
  on(second, [&] { return x.view({16}).slice(0, 1); });
}

TEST_F(Order, CountsFreshMemoryThatAKernelFills) {
  const Deterministic deterministic(true);
  Tensor x = empty({4});
  if (!fills_fresh_memory()) GTEST_SKIP() << "set_arithmetic has told libtorch not to";
  EXPECT_THAT([&] { on(second, [&] { x.fill_(1); }); },
              ThrowsMessage<Refused>(HasSubstr("what filling fresh memory on stream 0")));
}

TEST_F(Order, CountsMemoryThatWasJustTaken) {
  const Tensor x = ones({4});  // which may still be read when another tensor has its memory
  Tensor taken = empty({4});
  EXPECT_THAT([&] { on(second, [&] { taken.fill_(1); }); },
              ThrowsMessage<Refused>(HasSubstr("writes memory that an allocation on stream 0 of "
                                               "device 0 may have taken from earlier work")));
  recorded(first_stream()).block(second);
  on(second, [&] { taken.fill_(1); });
  wait_for(second);
}

TEST_F(Order, CountsRunningStatisticsAsWritten) {
  const Tensor x = ones({2, 3, 4, 4});
  Tensor mean = ones({3}), variance = ones({3});
  wait_for(first_stream());
  at::native_batch_norm(x, {}, {}, mean, variance, /*training=*/true, 0.1, 1e-5);
  EXPECT_THROW(on(second, [&] { return mean.sin(); }), Refused);
  wait_for(first_stream());
  at::native_batch_norm(x, {}, {}, mean, variance, /*training=*/false, 0.1, 1e-5);
  on(second, [&] { return mean.sin(); });
  wait_for(second);
}

TEST_F(Order, OfGradientsIsThatOfWhoAsksForThem) {
  on(second, [&] {
    const Tensor x = ones({4}).requires_grad_();
    const Tensor gradient = torch::autograd::grad({x.sin().sum()}, {x})[0];
    EXPECT_FLOAT_EQ(gradient.sum().item<float>(), 4 * std::cos(1.0F));
    return x;
  });
}

TEST_F(Order, BetweenDevicesComesWithACopy) {
  const Tensor here = ones({4});
  const Tensor there = at::empty({4}, at::device(device(1)));
  there.copy_(here);
  here.add_(1);
  EXPECT_EQ(there.add_(1).sum().item<float>(), 8);
  EXPECT_EQ(here.to(device(1)).device(), device(1));
}

TEST_F(Frees, AreRefusedWhileAnotherStreamUsesTheMemory) {
  Tensor x = ones({4});
  recorded(first_stream()).block(second);
  const Tensor y = on(second, [&] { return x.sin(); });
  x = Tensor();
  EXPECT_THAT([&] { ones({1}); }, ThrowsMessage<Refused>(AllOf(
                                      HasSubstr("memory of an allocation on stream 0 of device 0 "
                                                "was freed while aten::sin on stream"),
                                      HasSubstr("record_stream"))));
  ones({1});  // it is said once
}

TEST_F(FreesDeathTest, AreRefusedAtTheEndAtTheLatest) {
  const auto free_and_exit = [&] {
    Tensor x = ones({4});
    recorded(first_stream()).block(second);
    const Tensor y = on(second, [&] { return x.sin(); });
    x = Tensor();
    std::exit(0);
  };
  EXPECT_EXIT(free_and_exit(), ::testing::ExitedWithCode(1), "was freed while aten::sin");
}

TEST_F(Frees, AreOrderedByEventsAndByTheHost) {
  for (const bool host : {false, true}) {
    Tensor x = ones({4});
    recorded(first_stream()).block(second);
    const Tensor y = on(second, [&] { return x.sin(); });
    if (host)
      wait_for(second);
    else
      recorded(second).block(first_stream());
    const void* memory = x.data_ptr();
    x = Tensor();
    EXPECT_EQ(ones({4}).data_ptr(), memory) << "it can be used at once";
  }
}

TEST_F(Frees, MayComeEarlyForRecordedStreams) {
  Tensor x = ones({4});
  recorded(first_stream()).block(second);
  const Tensor y = on(second, [&] { return x.sin(); });
  x.record_stream(second);
  const void* memory = x.data_ptr();
  x = Tensor();
  EXPECT_NE(ones({4}).data_ptr(), memory) << "somebody uses it";
  wait_for(second);
  EXPECT_EQ(ones({4}).data_ptr(), memory);
}

TEST_F(Frees, HandOnWhatTheStreamHasWaitedFor) {
  const c10::Stream third = another_stream();
  Tensor x = ones({4});
  const c10::Event before = recorded(first_stream());
  before.block(second);
  before.block(third);
  const Tensor y = on(third, [&] { return x.sin(); });
  recorded(third).block(first_stream());
  x = Tensor();
  const Tensor again = empty({4});
  EXPECT_THROW(on(second, [&] { again.fill_(1); }), Refused) << "the third stream may still read";
  recorded(first_stream()).block(second);
  on(second, [&] { again.fill_(1); });
  wait_for(second);
}

TEST_F(Frees, KeepTheMemoryOfAStreamForIt) {
  Tensor x = ones({4});
  const void* memory = x.data_ptr();
  x = Tensor();
  EXPECT_NE(on(second, [&] { return ones({4}); }).data_ptr(), memory);
  EXPECT_EQ(ones({4}).data_ptr(), memory);
}

}  // namespace
}  // namespace mpi4dl::simulated
