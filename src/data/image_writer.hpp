#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mpi4dl {

// Image files that the program makes, by way of libvips. Throw Error with the file's name and what
// is wrong.

/// Writes grey pixels as a tiled TIFF with a pyramid down to one pixel.
void write_pyramid(const std::string& path, const std::vector<uint8_t>& pixels, int64_t size);

/// Writes RGB pixels, row by row, as PNG.
void write_png(const std::string& path, const uint8_t* rgb, int64_t height, int64_t width);

}  // namespace mpi4dl
