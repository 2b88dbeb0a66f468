#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "support/scratch_folder.hpp"

namespace mpi4dl::testing {

/// Is an image in memory: `bands` bytes a pixel, from top to bottom.
struct Picture {
  int height = 0, width = 0, bands = 3;
  std::vector<uint8_t> bytes;

  uint8_t at(int64_t row, int64_t col, int band) const {
    return bytes[(row * width + col) * bands + band];
  }
};

/// Makes a picture on which every place looks different: waves, so that lossy formats can cope, and
/// noise.
Picture make_picture(int height, int width, int bands = 3);

/// Says how a picture is saved. The ending of its name chooses the format.
struct SaveOptions {
  std::string save = {};         ///< options of libvips' saver: "tile,tile-width=32,pyramid"
  int orientation = 1;           ///< as EXIF counts
  double micrometres = 0;        ///< of a pixel; 0: not said
  std::string description = {};  ///< of a TIFF: by it OpenSlide knows whose slide it is
  bool sixteen_bits = false;
  bool floats = false;
  bool cmyk = false;
};

void save_picture(const Picture& picture, const std::string& path, const SaveOptions& options = {});

/// Leaves the first bytes of a file.
void truncate_file(const std::string& path, double share);

/// Overwrites 64 bytes of a file.
void damage_file(const std::string& path, int64_t from);

/// Overwrites some bytes, which must occur in the file, with as many others wherever they occur.
void replace_in_file(const std::string& path, std::string_view bytes, std::string_view others);

}  // namespace mpi4dl::testing
