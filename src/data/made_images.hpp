#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace mpi4dl {

class Communicator;

/// Describes a data set of square grey images that is to be made.
struct MadeImages {
  std::string out = {};                   ///< its folder, which gets train/CLASS and val/CLASS
  std::vector<std::string> classes = {};  ///< names
  int64_t training = 0, validation = 0;
  int64_t size = 0;  ///< height and width
};

/// Holds an image and its class.
struct MadeImage {
  std::vector<uint8_t> pixels;
  std::string class_name;
};

/// Makes the image of this index in a part, "train" or "val".
using ImageMaker = std::function<MadeImage(const std::string& part, int64_t index)>;

/// Writes all images as tiled TIFF with a pyramid, dealt out to ranks one by one. Throws UsageError
/// where the folder holds something already. Collective over the world.
void write_images(const MadeImages& set, const ImageMaker& make, const Communicator& world);

}  // namespace mpi4dl
