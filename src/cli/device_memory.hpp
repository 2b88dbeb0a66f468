#pragma once

#include <functional>

#include "cli/training_flags.hpp"
#include "comm/session.hpp"

namespace mpi4dl {

/// Runs a command that trains. Where a device has no memory left for it, that is said in one
/// sentence, with what the plan expected for the model and which flags help.
int with_planned_memory(const Session& session, const std::function<Graph()>& model,
                        const TrainingFlags& flags, const std::function<int()>& run);

}  // namespace mpi4dl
