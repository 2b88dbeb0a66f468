#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "comm/communicator.hpp"

namespace mpi4dl {

/// All ranks know of this failure and throw it together; one of them speaks for all.
class CommonError : public Error {
 public:
  using Error::Error;
};

/// Returns one text from each rank, in rank order, on every rank. Collective.
std::vector<std::string> gather_texts(const Communicator& ranks, const std::string& mine);

/// Runs `work`, which is not collective, on every rank. Where it fails on some, all ranks throw the
/// sentence of the first of them, as a CommonError, UsageError or FullMemory: nobody is left
/// waiting, and all can try something else. Collective.
void run_together(const Communicator& ranks, const std::function<void()>& work);

}  // namespace mpi4dl
