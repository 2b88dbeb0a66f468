// The memory of the simulated device, its copies, and its counters.
#include "support/simulated_device.hpp"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdint>

#include "support/simulated_device/addresses.hpp"
#include "support/simulated_device/fixture.hpp"

namespace mpi4dl::simulated {
namespace {

using at::Tensor;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

using Memory = SimulatedDevice;
using MemoryDeathTest = SimulatedDevice;
using Copies = SimulatedDevice;
using Counts = SimulatedDevice;

bool all_nan(const Tensor& tensor) {
  return tensor.cpu().isnan().all().item<bool>();
}

TEST_F(MemoryDeathTest, KillsAHostThatTouchesIt) {
  const Tensor x = ones({4});
  const auto touch = [](const Tensor& tensor) {
    return *static_cast<const volatile float*>(tensor.data_ptr());
  };
  EXPECT_EXIT(touch(x), ::testing::KilledBySignal(SIGSEGV),
              "^the host touched memory of the simulated device\n$");
  const Tensor host = at::ones({4});
  EXPECT_EQ(touch(host), 1);
}

TEST_F(MemoryDeathTest, IsNotToBlameForOtherFaults) {
  ones({4});
  const auto died = [](int status) { return status != 0; };  // as it would without the device
  const auto not_of_it = ::testing::Not(HasSubstr("the host touched"));
  EXPECT_EXIT(std::raise(SIGSEGV), died, not_of_it);
  volatile uintptr_t nowhere = 64;
  EXPECT_EXIT(static_cast<void>(*reinterpret_cast<const volatile char*>(nowhere)), died, not_of_it);
}

TEST_F(Memory, IsNanUntilItIsWritten) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf})
    EXPECT_TRUE(all_nan(at::empty({5}, at::device(device()).dtype(dtype)))) << dtype;
  Tensor grown = ones({2});
  grown.resize_({3});
  const Tensor values = grown.cpu();
  EXPECT_EQ(values[1].item<float>(), 1);
  EXPECT_TRUE(values[2].isnan().item<bool>());
}

TEST_F(Memory, IsNanAgainWhenItIsFreed) {
  Tensor x = ones({4});
  const std::byte* bytes = bytes_behind(x.data_ptr());
  EXPECT_EQ(*reinterpret_cast<const float*>(bytes), 1);
  x = Tensor();
  for (size_t i = 0; i < 4 * sizeof(float); ++i) EXPECT_EQ(bytes[i], std::byte{0xFF});
}

TEST_F(Memory, ComesInDevicesOfALimitedSize) {
  EXPECT_EQ(guard().deviceCount(), 2);
  EXPECT_THAT([] { guard().setDevice(device(2)); },
              ThrowsMessage<c10::Error>(HasSubstr("there is no simulated device 2: there are 2")));
  EXPECT_THAT(
      [&] { empty({int64_t{1} << 35}); },
      ThrowsMessage<c10::OutOfMemoryError>(HasSubstr("simulated device 0 is out of memory")));
}

TEST_F(Memory, OfOneTensorCanBeThatOfAnother) {
  const Tensor x = at::arange(6, at::device(device()).dtype(at::kFloat));
  Tensor whole = empty({0}), part = empty({0}), strided = empty({0}), none = x.clone();
  whole.set_(x.storage());
  part.set_(x.storage(), 2, {3});
  strided.set_(x.storage(), 1, {2, 2}, {3, 1});
  none.set_();
  x.add_(1);
  EXPECT_TRUE(whole.cpu().equal(at::tensor({1., 2., 3., 4., 5., 6.}, at::kFloat)));
  EXPECT_TRUE(part.cpu().equal(at::tensor({3., 4., 5.}, at::kFloat)));
  EXPECT_TRUE(strided.cpu().equal(at::tensor({2., 3., 5., 6.}, at::kFloat).view({2, 2})));
  EXPECT_EQ(none.numel(), 0);
}

TEST_F(Memory, IsOfOneDeviceInAnOperator) {
  const Tensor here = ones({4});
  const auto expected = ThrowsMessage<c10::Error>(HasSubstr("on the same device"));
  EXPECT_THAT([&] { here + at::ones({4}, at::device(device(1))); }, expected);
  EXPECT_THAT([&] { here + at::ones({4}); }, expected);
  EXPECT_THAT([&] { at::conv2d(here.view({1, 1, 2, 2}), at::ones({1, 1, 1, 1})); }, expected);
  EXPECT_THAT([&] { here.index({at::zeros({1}, at::kLong)}); }, expected);
  EXPECT_EQ((here + at::ones({})).device(), device());  // a number
}

TEST_F(Copies, ArriveWhenSomebodyHasWaited) {
  const Tensor x = ones({2, 3});
  Tensor host = pinned({2, 3}, at::kDouble), count = pinned({2}, at::kLong);
  host.copy_(x, /*non_blocking=*/true);
  count.copy_(x.sum(1), /*non_blocking=*/true);
  EXPECT_TRUE(host.isnan().all().item<bool>());
  EXPECT_EQ(count[0].item<int64_t>(), -1);
  wait_for(second);
  EXPECT_TRUE(host.isnan().all().item<bool>()) << "that was another stream";
  const c10::Event event = recorded(first_stream());
  while (!event.query()) EXPECT_TRUE(host.isnan().all().item<bool>());
  EXPECT_EQ(host.sum().item<double>(), 6);
  EXPECT_EQ(count[0].item<int64_t>(), 3);
}

TEST_F(Copies, AreThereAtOnceWhenTheyBlock) {
  const Tensor x = ones({2, 3});
  EXPECT_EQ(x.cpu().sum().item<float>(), 6);
  EXPECT_EQ(x.to(at::kDouble).cpu().sum().item<double>(), 6);
  EXPECT_EQ(at::ones({3, 2}).to(device()).t().cpu().sum().item<float>(), 6);
}

TEST_F(Copies, AreOrderedLikeOperators) {
  const Tensor x = ones({4});
  EXPECT_THAT([&] { on(second, [&] { return x.cpu(); }); },
              ThrowsMessage<Refused>(HasSubstr("a copy to the host on stream")));
  EXPECT_THROW(on(second, [&] { return x.copy_(at::zeros({4})); }), Refused);
}

TEST_F(Copies, NeedTheirSourceUnchangedUntilSomebodyHasWaited) {
  Tensor x = empty({4}), host = pinned({4}).fill_(1);
  x.copy_(host, /*non_blocking=*/true);
  wait_for(first_stream());
  host.add_(1);
  x.copy_(host, /*non_blocking=*/true);
  host.add_(1);
  EXPECT_THAT([&] { wait_for(first_stream()); },
              ThrowsMessage<Refused>(HasSubstr("the host changed memory while")));
}

TEST_F(Counts, WhatADeviceWouldDo) {
  const Tensor x = ones({4}), y = ones({4});
  wait_for(first_stream());
  reset_counters();
  const Tensor z = x.view({2, 2}).t() + y.view({2, 2});
  EXPECT_EQ(counters().operators, 1) << "views are none";
  const Tensor copy = z.clone();
  EXPECT_EQ(counters().operators, 2);
  EXPECT_EQ(counters().host_waits, 0);
  EXPECT_EQ(counters().copies_in + counters().copies_out, 0);
}

TEST_F(Counts, WaitsAndCopies) {
  const Tensor x = ones({4});
  reset_counters();
  x.cpu();
  EXPECT_EQ(counters().host_waits, 1);
  EXPECT_EQ(counters().copies_out, 1);
  EXPECT_EQ(counters().bytes_out, 16);
  at::ones({3}, at::kDouble).to(device());
  EXPECT_EQ(counters().host_waits, 2);
  EXPECT_EQ(counters().copies_in, 1);
  EXPECT_EQ(counters().bytes_in, 24);
  x[0].item();
  EXPECT_EQ(counters().host_waits, 3);
  EXPECT_EQ(counters().bytes_out, 20);
  at::nonzero(x);
  x.index({x > 0});
  at::equal(x, x);
  EXPECT_EQ(counters().host_waits, 6);
  Tensor y = x.clone();
  y.index_put_({x > 0}, at::zeros({}));
  EXPECT_EQ(counters().host_waits, 6);
  y.index_put_({x > 0}, x);
  EXPECT_EQ(counters().host_waits, 7);
  Tensor host = pinned({4});
  host.copy_(x, /*non_blocking=*/true);
  const c10::Event event = recorded(first_stream());
  while (!event.query()) EXPECT_EQ(counters().host_waits, 7);
  EXPECT_TRUE(event.query());
  EXPECT_EQ(counters().host_waits, 8) << "one for all questions";
}

TEST_F(Counts, AWaitForACopyOfMemoryThatIsNotPinned) {
  const Tensor x = ones({4});
  reset_counters();
  at::ones({4}).to(device(), /*non_blocking=*/true);
  EXPECT_EQ(counters().host_waits, 1);
  Tensor host = at::zeros({4});
  host.copy_(x, /*non_blocking=*/true);
  EXPECT_EQ(counters().host_waits, 2);
  EXPECT_EQ(host.sum().item<float>(), 4);
}

TEST_F(Counts, PinnedMemoryOnceHoweverOftenItIsGivenOut) {
  pinned({1000});
  reset_counters();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(pinned({1000 + i}).isnan().all().item<bool>());
  EXPECT_EQ(counters().pinned_bytes, 0);
  const Tensor one = pinned({1000}), other = pinned({1000});
  EXPECT_EQ(counters().pinned_bytes, 4096);
}

TEST_F(Counts, LiveAndPeakBytes) {
  const int64_t before = counters().live_bytes;
  reset_counters();
  EXPECT_EQ(counters().peak_bytes, before);
  ones({1024});
  EXPECT_EQ(counters().live_bytes, before);
  EXPECT_EQ(counters().peak_bytes, before + 4096);
}

}  // namespace
}  // namespace mpi4dl::simulated
