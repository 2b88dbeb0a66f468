#include "exchange/redistribution.hpp"

#include <algorithm>
#include <utility>

#include "backend/backend.hpp"
#include "base/error.hpp"
#include "comm/idle_section.hpp"
#include "exchange/device_flight.hpp"
#include "exchange/flight_state.hpp"
#include "exchange/transport.hpp"

namespace mpi4dl {
namespace {

/// Is a redistribution between patches in host memory. Incoming routes are finished in the order of
/// their peers, so that sums do not depend on timing.
class HostFlight : public Redistribution::Flight::State {
 public:
  explicit HostFlight(const Journey& journey)
      : context_(journey.link.comm().context()), how_(journey.how), to_(journey.to) {
    const IdleSection section(context_, &IdleTime::communication);
    incoming_.reserve(journey.receives.size());
    for (size_t i = 0; i < journey.receives.size(); ++i)
      incoming_.emplace_back(journey.link, i, journey.receives[i], to_,
                             /*in_place=*/how_ == Combine::copy);
    outgoing_.reserve(journey.sends.size());
    for (size_t i = 0; i < journey.sends.size(); ++i)
      outgoing_.emplace_back(journey.link, i, journey.sends[i], journey.from);
    for (const Box& box : journey.local) context_.backend->move(how_, journey.from, to_, box);
  }

  void receive() override {
    const IdleSection section(context_, &IdleTime::communication);
    for (Incoming& route : incoming_)
      route.receive([this](const Box& box, const Strided& values) {
        context_.backend->read(how_, values, to_, box);
      });
    incoming_.clear();
  }

  bool received() const override { return incoming_.empty(); }

  bool sent() override {
    return std::ranges::all_of(outgoing_, [](Outgoing& route) { return route.done(); });
  }

  void finish() override {
    receive();
    const IdleSection section(context_, &IdleTime::communication);
    for (Outgoing& route : outgoing_) route.finish();
    context_.release_acknowledged();
  }

 private:
  CommContext& context_;
  Combine how_;
  Patch to_;
  std::vector<Outgoing> outgoing_;
  std::vector<Incoming> incoming_;
};

Redistribution::Flight launch(const Journey& journey) {
  if (journey.link.comm().context().backend->on_host())
    return Redistribution::Flight(std::make_unique<HostFlight>(journey));
  return Redistribution::Flight(std::make_unique<DeviceFlight>(journey));
}

}  // namespace

Redistribution::Flight::Flight(std::unique_ptr<State> state) : state_(std::move(state)) {}
Redistribution::Flight::Flight(Flight&&) noexcept = default;
Redistribution::Flight& Redistribution::Flight::operator=(Flight&&) noexcept = default;
Redistribution::Flight::~Flight() = default;

void Redistribution::Flight::receive() {
  if (state_) state_->receive();
}

bool Redistribution::Flight::received() const {
  return !state_ || state_->received();
}

void Redistribution::Flight::finish() {
  if (state_) state_->finish();
  state_.reset();
}

bool Redistribution::Flight::sent() {
  return !state_ || state_->sent();
}

Redistribution::Redistribution(const Communicator& comm, const std::vector<std::vector<Box>>& owned,
                               const std::vector<std::vector<Box>>& needed, Transport within_node)
    : routes_(find_routes(owned, needed, comm.rank())) {
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
  return launch({Combine::copy, *forward_, routes_.send, routes_.receive, routes_.local, from, to});
}

Redistribution::Flight Redistribution::start_adjoint(const Patch& to, const Patch& from) const {
  return launch({Combine::add, *adjoint_, routes_.receive, routes_.send, routes_.local, to, from});
}

}  // namespace mpi4dl
