#pragma once

#include "comm/session.hpp"
#include "layout/layout.hpp"
#include "train/trainer.hpp"

namespace mpi4dl {

/// Prints what each rank has and needs. `peak_bytes`: of this rank's activations. Collective.
void print_ranks(const Session& session, const Layout& layout, const Trainer& trainer,
                 int64_t peak_bytes);

}  // namespace mpi4dl
