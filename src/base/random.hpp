#pragma once

#include <cstdint>
#include <string_view>

namespace mpi4dl {

// Counter-based random numbers: a number depends on its key and its place in the global tensor
// alone, so every layout draws the same ones. The mixing function is splitmix64's (Steele, Lea and
// Flood 2014).

inline uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

/// Returns a key made of two others.
inline uint64_t combine_keys(uint64_t a, uint64_t b) {
  return mix(mix(a) ^ b);
}

/// Returns a key from a name, the same on every machine.
inline uint64_t key_of(std::string_view name) {
  uint64_t key = 0;
  for (const char c : name) key = combine_keys(key, static_cast<unsigned char>(c));
  return key;
}

/// Returns the `counter`-th number of this key's sequence, in [0, 1).
inline double uniform(uint64_t key, uint64_t counter) {
  return static_cast<double>(combine_keys(key, counter) >> 11) * 0x1p-53;
}

}  // namespace mpi4dl
