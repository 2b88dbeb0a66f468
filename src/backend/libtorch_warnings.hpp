#pragma once

namespace mpi4dl {

/// Has each sentence that libtorch warns with printed once, and by the first rank alone: of
/// operators that are not deterministic it warns at every call. It is for the calling thread, to
/// which autograd brings the warnings of its own.
void warn_once(bool first_rank);

}  // namespace mpi4dl
