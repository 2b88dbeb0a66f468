#pragma once

#include <cstdint>
#include <string>

namespace mpi4dl {

/// Reads a size: "32G" and "32GiB" are 32 times 1024³ bytes, "32GB" is 32 times 1000³, "4096" is
/// bytes; also K, M and T, and fractions. Throws UsageError that names the flag where it is none.
int64_t parse_byte_size(const std::string& flag, const std::string& text);

/// Returns "512 B", "30.1 MiB", "2.38 GiB" or "32 GiB": three digits are enough to compare.
std::string readable_bytes(int64_t bytes);

}  // namespace mpi4dl
