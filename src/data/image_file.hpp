#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "data/orientation.hpp"
#include "data/raster.hpp"

namespace mpi4dl {

/// Holds what the header of an image file says.
struct ImageHeader {
  std::string format;           ///< "PNG", "JPEG", "TIFF", "aperio slide", ...
  std::vector<Extents> levels;  ///< stored heights and widths, from the finest to the coarsest
  Extents tile;                 ///< height and width of its tiles, where known
  int bands = 0, bits = 0;      ///< in the file; pixels are always handed over as RGB
  std::array<double, 2> micrometres = {0, 0};  ///< a pixel's height and width; 0: nobody knows
  Orientation orientation;
  std::string loader;    ///< the operation of libvips that reads it
  bool regions = false;  ///< parts are read without what is above them

  /// Returns height and width of a level as it is shown.
  Extents shown(int level) const { return orientation.shown(levels.at(level)); }
};

// Image files, by way of libvips: PNG, JPEG, TIFF and BigTIFF with their pyramids, through
// OpenSlide the slides of many vendors, and what else libvips reads. Grey, 16-bit, CMYK and
// transparent pixels become 8-bit RGB (transparent: over white). A tiled file is read where it is
// needed; of others, the rows above are decoded and forgotten. A file is open only during a call,
// and nothing is cached.
//
// Any number of threads may call. Throws Error with the file's name and what is wrong with it, also
// where a file is damaged or ends too early.

ImageHeader read_header(const std::string& path);

/// Hands an opened level to `use`. That must start from nothing whenever it is called: a read that
/// has failed is tried again alone, because libvips keeps its reasons in one place for all threads.
void with_image(const std::string& path, const ImageHeader& header, int level,
                const std::function<void(Raster&)>& use);

/// Returns whether a file is an image or a slide: by its ending or, whatever its name, by what it
/// begins with.
bool is_image_file(const std::string& path);

/// Returns whether a file of this name could be an image: by its ending.
bool has_image_name(const std::string& path);

/// Returns the endings, for sentences: ".png, .jpg, ..."
std::string image_endings();

}  // namespace mpi4dl
