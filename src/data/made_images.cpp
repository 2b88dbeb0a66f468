#include "data/made_images.hpp"
#include "comm/collectives.hpp"

#include <fmt/format.h>

#include "comm/communicator.hpp"
#include "data/class_folders.hpp"
#include "data/image_writer.hpp"

namespace mpi4dl {
namespace {

void write_part(const MadeImages& set, const std::string& part, int64_t count,
                const ImageMaker& make, const Communicator& world) {
  for (int64_t index = world.rank(); index < count; index += world.size()) {
    const MadeImage image = make(part, index);
    const auto folder = class_folder(set.out, part, image.class_name);
    write_pyramid((folder / fmt::format("{:05}.tif", index)).string(), image.pixels, set.size);
  }
}

}  // namespace

void write_images(const MadeImages& set, const ImageMaker& make, const Communicator& world) {
  if (world.rank() == 0) make_class_folders(set.out, set.classes);
  barrier(world);
  write_part(set, "train", set.training, make, world);
  write_part(set, "val", set.validation, make, world);
  barrier(world);
}

}  // namespace mpi4dl
