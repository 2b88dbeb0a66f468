#include "support/simulated_device/order.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

#include "support/simulated_device.hpp"

namespace mpi4dl::simulated {
namespace {

std::string by(const std::string& name, Agent agent) {
  if (agent == kHost) return name;
  if (agent == kMessage) return name + ", which is under way,";
  const int stream = agent - 1;
  return fmt::format("{} on stream {} of device {}", name, stream % kStreamsOfDevice,
                     stream / kStreamsOfDevice);
}

std::string sentence(const std::string& name, Agent agent, Access access, const Entry& before) {
  const char* does = access == Access::reads ? "reads" : "writes";
  const char* missing = agent == kHost ? "the host has not waited for it" : "nothing orders them";
  if (before.access == Access::takes)
    return fmt::format("{} {} memory that {} may have taken from earlier work; {}", by(name, agent),
                       does, by("an allocation", before.when.agent), missing);
  return fmt::format("{} {} what {} {}; {}", by(name, agent), does,
                     by(before.name, before.when.agent),
                     before.access == Access::reads ? "reads" : "writes", missing);
}

}  // namespace

Agent agent_of(const c10::Stream& stream) {
  return 1 + stream.device_index() * kStreamsOfDevice + static_cast<int>(stream.id());
}

/// Says what nobody was left to throw.
void end_of_program() {
  const std::string& sentence = Order::instance().freed_too_early_;
  if (sentence.empty()) return;
  std::fprintf(stderr, "%s\n", sentence.c_str());
  std::fflush(nullptr);
  std::_Exit(1);
}

Order& Order::instance() {
  // Tensors may be freed after everything else.
  static Order& order = *new Order;
  static const int at_exit = std::atexit(end_of_program);
  (void)at_exit;
  return order;
}

Clock& Order::clock_of(Agent agent) {
  if (clocks_.size() <= static_cast<size_t>(agent)) clocks_.resize(agent + 1);
  return clocks_[agent];
}

void Order::launch(Agent stream) {
  Clock& clock = clock_of(stream);
  clock.learn(clocks_[kHost]);
}

void Order::throw_what_was_freed() {
  if (!freed_too_early_.empty()) throw Refused(std::exchange(freed_too_early_, {}));
}

void Order::check(const std::string& name, Agent agent, const Clock& clock,
                  std::span<const Touch> touches) const {
  for (const auto& [history, access, bytes] : touches)
    if (const Entry* before = history->conflict(access, bytes, clock))
      throw Refused(sentence(name, agent, access, *before));
}

Moment Order::run(Agent stream, const std::string& name, std::span<const Touch> touches) {
  const std::lock_guard lock(mutex_);
  throw_what_was_freed();
  launch(stream);
  Clock& clock = clock_of(stream);
  check(name, stream, clock, touches);
  const Moment when{stream, clock.reached(stream) + 1};
  clock.learn(when);
  for (const auto& [history, access, bytes] : touches)
    history->add({when, access, bytes, name}, clocks_[kHost]);
  return when;
}

void Order::wrote(const Moment& when, const std::string& name, const Touch& touch) {
  const std::lock_guard lock(mutex_);
  touch.history->add({when, Access::writes, touch.bytes, name}, clock_of(kHost));
}

Clock Order::after(Agent stream) {
  const std::lock_guard lock(mutex_);
  launch(stream);
  return clock_of(stream);
}

void Order::block(Agent stream, const Clock& clock) {
  const std::lock_guard lock(mutex_);
  launch(stream);
  Clock& own = clock_of(stream);
  own.learn(clock);
  // Who only knows what was before this wait does not know what was waited for.
  own.learn(Moment{stream, own.reached(stream) + 1});
}

bool Order::host_knows(const Clock& clock) {
  const std::lock_guard lock(mutex_);
  return clock_of(kHost).knows(clock);
}

bool Order::host_knows(const Moment& moment) {
  const std::lock_guard lock(mutex_);
  return clock_of(kHost).knows(moment);
}

void Order::host_learns(const Clock& clock) {
  const std::lock_guard lock(mutex_);
  clock_of(kHost).learn(clock);
  throw_what_was_freed();
}

void Order::takes(Agent stream, History& history, const Footprint& bytes) {
  const std::lock_guard lock(mutex_);
  launch(stream);
  const Moment now{stream, clock_of(stream).reached(stream)};
  history.begin({now, Access::takes, bytes, {}});
}

void Order::frees(Agent stream, const History& history, const std::vector<Agent>& users) {
  const std::lock_guard lock(mutex_);
  launch(stream);
  const Entry* entry = history.unknown_to(clock_of(stream), users);
  if (entry == nullptr || !freed_too_early_.empty()) return;
  freed_too_early_ =
      fmt::format("memory of {} was freed while {} {} it; wait for it before, or record_stream",
                  by("an allocation", stream), by(entry->name, entry->when.agent),
                  entry->access == Access::reads ? "reads" : "writes");
}

int64_t Order::message_begins(const std::string& name, const Touch& touch) {
  const std::lock_guard lock(mutex_);
  throw_what_was_freed();
  Clock& host = clock_of(kHost);
  check(name, kHost, host, {&touch, 1});
  const int64_t message = ++messages_;
  touch.history->add({{kMessage, message}, touch.access, touch.bytes, name}, host);
  return message;
}

void Order::message_ends(int64_t message, History& history) {
  const std::lock_guard lock(mutex_);
  Clock& host = clock_of(kHost);
  const Moment now{kHost, host.reached(kHost) + 1};
  host.learn(now);
  history.ended(message, now);
}

}  // namespace mpi4dl::simulated
