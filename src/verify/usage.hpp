#pragma once

#include <optional>

#include "verify/verification.hpp"

namespace mpi4dl {

/// Adds up what all ranks send, and holds the most memory that one of them needs.
struct Usage {
  int64_t messages = 0, bytes = 0, peak_bytes = 0;
};

/// Returns what the plan says of messages and bytes; none with recompute, where cells run twice and
/// exchange some of their halos twice.
std::optional<Usage> planned_usage(const Graph& graph, const Layout& layout,
                                   const VerificationOptions& options);

/// Returns what ranks have measured. Collective over the world.
Usage measured_usage(const StepResult& mine, const Communicator& world);

}  // namespace mpi4dl
