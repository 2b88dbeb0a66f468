#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace mpi4dl {

/// Digit is a handwritten digit: 0 is background, 255 is ink.
struct Digit {
  static constexpr int64_t kSide = 28;
  std::array<uint8_t, kSide * kSide> pixels;
  int label = 0;
};

/// Reads the digits of the MNIST database for training, or those for testing, from its idx files
/// (train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-...), which may end in .gz. Throws
/// UsageError where they are not there or not what they should be.
std::vector<Digit> read_mnist(const std::string& folder, bool training);

}  // namespace mpi4dl
