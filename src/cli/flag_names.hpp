#pragma once

#include <exception>
#include <string>

namespace mpi4dl {

class Session;

/// Appends the flags by which a user sets what a sentence of the library is about. The library
/// speaks of its options, and does not know what the command line calls them.
std::string with_flags(const std::string& sentence);

/// Ends the job with the sentence of this error, and the flags that it is about.
[[noreturn]] void fail_with_flags(Session& session, const std::exception& error);

}  // namespace mpi4dl
