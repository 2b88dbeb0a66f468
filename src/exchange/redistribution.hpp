#pragma once

#include <memory>
#include <vector>

#include "comm/communicator.hpp"
#include "exchange/patch.hpp"
#include "geometry/routes.hpp"

namespace mpi4dl {

class Link;

/// Says how a redistribution travels between ranks of one node; between nodes there are messages
/// only.
enum class Transport { shared_memory, messages };

/// Moves all data in one primitive: from boxes owned to boxes needed.
///
/// A halo exchange, a join of tiles, a scatter and a batch resplit differ only in who owns and who
/// needs what. The adjoint sends every box back and adds it into its owner.
///
///     Redistribution halo(comm, owned, needed);   // once
///     Flight flight = halo.start({owned_box, x}, {needed_box, padded});  // every step
///     ... compute what needs no halo ...
///     flight.finish();
///
/// Ranks on one node read each other's pixels where they lie (one copy, no packing); between nodes
/// a route is one message, packed unless its pixels are contiguous already.
class Redistribution {
 public:
  /// A flight is a redistribution under way.
  class Flight {
   public:
    class State;
    explicit Flight(std::unique_ptr<State> state);
    Flight(Flight&&) noexcept;
    Flight& operator=(Flight&&) noexcept;
    ~Flight();
    /// Returns when `to` is filled. `from` need not be kept, but must not change yet.
    void receive();
    /// Returns true once receive() was called, or nothing is to come.
    bool received() const;
    /// Returns when `to` is filled and `from` may change.
    void finish();
    /// Returns true once every receiver has what this rank sends, so that `from` may be reused;
    /// never blocks.
    bool sent();

   private:
    std::unique_ptr<State> state_;
  };

  /// `owned` and `needed` are boxes of each rank of `comm`; see find_routes for what may overlap.
  /// All ranks make their redistributions on a communicator in the same order.
  Redistribution(const Communicator& comm, const std::vector<std::vector<Box>>& owned,
                 const std::vector<std::vector<Box>>& needed,
                 Transport within_node = Transport::shared_memory);
  /// Waits until peers on this node have what was sent to them.
  ~Redistribution();
  Redistribution(const Redistribution&) = delete;
  Redistribution& operator=(const Redistribution&) = delete;

  /// Fills the needed boxes of this rank in `to` from the owned boxes in everybody's `from`.
  /// Where `to` is a buffer around `from` (same memory), only the halo moves. Elements of `to`
  /// that nobody owns, such as padding, are left alone. Collective, as is each call below.
  Flight start(const Patch& from, const Patch& to) const;
  void run(const Patch& from, const Patch& to) const { start(from, to).finish(); }

  /// Adds the needed boxes in everybody's `to` into their owners' `from`.
  Flight start_adjoint(const Patch& to, const Patch& from) const;
  void run_adjoint(const Patch& to, const Patch& from) const { start_adjoint(to, from).finish(); }

  /// Returns true where something of it goes to or comes from another node, so that it takes time
  /// which a caller can use.
  bool leaves_node() const;

  const Routes& routes() const { return routes_; }
  const Communicator& comm() const;

 private:
  Routes routes_;
  std::unique_ptr<const Link> forward_, adjoint_;
};

}  // namespace mpi4dl
