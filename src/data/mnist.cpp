#include "data/mnist.hpp"

#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <span>

#include "base/error.hpp"

namespace mpi4dl {
namespace {

/// Finds a file or its compressed form, both of which zlib reads.
std::string find_file(const std::string& folder, const std::string& name) {
  for (const char* ending : {"", ".gz"})
    if (const auto path = std::filesystem::path(folder) / (name + ending);
        std::filesystem::is_regular_file(path))
      return path.string();
  throw UsageError(fmt::format("there is no {0} and no {0}.gz in {1}", name, folder));
}

/// Holds the bytes of an idx file behind its header, which must have these lengths of axes; the
/// first may be any and is returned.
struct IdxFile {
  IdxFile(const std::string& path, std::span<const int64_t> other_axes) {
    const std::unique_ptr<gzFile_s, decltype(&gzclose)> file(gzopen(path.c_str(), "rb"), gzclose);
    validate(file != nullptr, "cannot open {}", path);
    const auto read = [&](void* to, int64_t bytes) {
      validate(gzread(file.get(), to, static_cast<unsigned>(bytes)) == bytes,
               "{} ends too early; it is damaged", path);
    };
    const auto number = [&] {
      std::array<uint8_t, 4> bytes{};
      read(bytes.data(), 4);
      return int64_t{bytes[0]} << 24 | bytes[1] << 16 | bytes[2] << 8 | bytes[3];
    };
    const int64_t unsigned_bytes = 0x800;
    validate(number() == unsigned_bytes + 1 + static_cast<int64_t>(other_axes.size()),
             "{} is not an idx file of MNIST", path);
    count = number();
    int64_t size = count;
    for (const int64_t length : other_axes) {
      validate(number() == length, "the digits in {} are not {}x{}", path, Digit::kSide,
               Digit::kSide);
      size *= length;
    }
    constexpr int64_t kMost = int64_t{1} << 30;
    validate(size > 0 && size < kMost, "{} is not an idx file of MNIST", path);
    bytes.resize(size);
    read(bytes.data(), size);
  }

  int64_t count = 0;
  std::vector<uint8_t> bytes;
};

}  // namespace

std::vector<Digit> read_mnist(const std::string& folder, bool training) {
  const std::string part = training ? "train" : "t10k";
  const std::array<int64_t, 2> sides{Digit::kSide, Digit::kSide};
  const IdxFile images(find_file(folder, part + "-images-idx3-ubyte"), sides);
  const std::string label_path = find_file(folder, part + "-labels-idx1-ubyte");
  const IdxFile labels(label_path, {});
  validate(images.count == labels.count, "{} has {} labels for {} images", label_path, labels.count,
           images.count);
  std::vector<Digit> digits(images.count);
  for (int64_t i = 0; i < images.count; ++i) {
    Digit& digit = digits[i];
    const auto first = images.bytes.begin() + i * static_cast<int64_t>(digit.pixels.size());
    std::copy_n(first, digit.pixels.size(), digit.pixels.begin());
    digit.label = labels.bytes[i];
    validate(digit.label < 10, "{} has a label {}; digits are 0 to 9", label_path, digit.label);
  }
  return digits;
}

}  // namespace mpi4dl
