#include "exchange/redistribution.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "comm/idle_section.hpp"
#include "exchange/transport.hpp"

namespace mpi4dl {
namespace {

enum class Combine { copy, add };

void combine(Combine how, const Patch& to, const Box& box, const Strided& values) {
  if (to.data.is_cpu()) {
    how == Combine::add ? add(strided(to, box), values) : copy(strided(to, box), values);
  } else if (how == Combine::add) {
    to.view(box).add_(as_tensor(values).to(to.data.device()));
  } else {
    to.view(box).copy_(as_tensor(values));
  }
}

/// What a rank keeps of a redistribution goes straight across, unless both are the same memory.
void combine_local(Combine how, const std::vector<Box>& boxes, const Patch& from, const Patch& to) {
  for (const Box& box : boxes) {
    const Strided values = strided(from, box);
    if (values.data == strided(to, box).data) continue;
    if (from.data.is_cpu()) {
      combine(how, to, box, values);
    } else if (how == Combine::copy) {
      to.view(box).copy_(from.view(box));
    } else {
      to.view(box).add_(from.view(box));
    }
  }
}

}  // namespace

/// Incoming routes are finished in the order of their peers, so that sums do not depend on timing.
struct Redistribution::Flight::State {
  CommContext& context;
  Combine how;
  Patch to;
  std::vector<Outgoing> outgoing;
  std::vector<Incoming> incoming;

  void receive() {
    const IdleSection section(context, &IdleTime::communication);
    for (Incoming& route : incoming)
      route.receive(
          [this](const Box& box, const Strided& values) { combine(how, to, box, values); });
    incoming.clear();
  }

  void finish() {
    receive();
    const IdleSection section(context, &IdleTime::communication);
    for (Outgoing& route : outgoing) route.finish();
    context.forget_taken();
  }

  static Flight launch(Combine how, const Link& link, const std::vector<Route>& sends,
                       const std::vector<Route>& receives, const std::vector<Box>& local,
                       const Patch& from, const Patch& to) {
    CommContext& context = link.comm().context();
    const IdleSection section(context, &IdleTime::communication);
    auto state = std::make_unique<State>(State{context, how, to, {}, {}});
    state->incoming.reserve(receives.size());
    for (size_t i = 0; i < receives.size(); ++i)
      state->incoming.emplace_back(link, i, receives[i], to, /*in_place=*/how == Combine::copy);
    state->outgoing.reserve(sends.size());
    for (size_t i = 0; i < sends.size(); ++i) state->outgoing.emplace_back(link, i, sends[i], from);
    combine_local(how, local, from, to);
    return Flight(std::move(state));
  }
};

Redistribution::Flight::Flight(std::unique_ptr<State> state) : state_(std::move(state)) {}
Redistribution::Flight::Flight(Flight&&) noexcept = default;
Redistribution::Flight& Redistribution::Flight::operator=(Flight&&) noexcept = default;
Redistribution::Flight::~Flight() = default;

void Redistribution::Flight::receive() {
  if (state_) state_->receive();
}

bool Redistribution::Flight::received() const {
  return !state_ || state_->incoming.empty();
}

void Redistribution::Flight::finish() {
  if (state_) state_->finish();
  state_.reset();
}

bool Redistribution::Flight::sent() {
  return !state_ || std::all_of(state_->outgoing.begin(), state_->outgoing.end(),
                                [](Outgoing& route) { return route.done(); });
}

Redistribution::Redistribution(const Communicator& comm, const std::vector<std::vector<Box>>& owned,
                               const std::vector<std::vector<Box>>& needed, std::string name,
                               Transport within_node)
    : routes_(find_routes(owned, needed, comm.rank())), name_(std::move(name)) {
  const int tag = comm.reserve_tags(2);
  forward_ = std::make_unique<Link>(comm, tag, routes_.send, routes_.receive, within_node);
  adjoint_ = std::make_unique<Link>(comm, tag + 1, routes_.receive, routes_.send, within_node);
}

Redistribution::~Redistribution() = default;

const Communicator& Redistribution::comm() const {
  return forward_->comm();
}

bool Redistribution::leaves_node() const {
  return forward_->leaves_node();
}

Redistribution::Flight Redistribution::start(const Patch& from, const Patch& to) const {
  return Flight::State::launch(Combine::copy, *forward_, routes_.send, routes_.receive,
                               routes_.local, from, to);
}

Redistribution::Flight Redistribution::start_adjoint(const Patch& to, const Patch& from) const {
  return Flight::State::launch(Combine::add, *adjoint_, routes_.receive, routes_.send,
                               routes_.local, to, from);
}

}  // namespace mpi4dl
