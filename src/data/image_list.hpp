#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mpi4dl {

struct ListedImage {
  static constexpr int64_t kUnknown = -1;

  std::string path = {};
  int64_t label = kUnknown;
  uint64_t key = 0;  ///< from its name below the folder: decides what --val-fraction holds out
  bool validation = false;
};

/// The image files of a data set and their classes, found without opening any of them.
struct ImageList {
  std::vector<std::string> classes;  ///< names of folders; none where numbers come from a CSV file
  std::vector<ListedImage> images;   ///< in an order that is the same on every machine
  bool has_split = false;            ///< it says itself what is for validation
};

/// What lies under a path. A folder has a folder for each class, whose sorted names are the
/// classes, and images anywhere below; or `train` and `val`, which are such folders; or images
/// alone, whose classes are unknown. A file is a CSV with the columns path and, if known, label and
/// split. Throws UsageError where it is none of these.
ImageList list_images(const std::string& path);

/// Throws UsageError where an image has no class, or one that is not among so many.
void check_classes(const ImageList& list, int64_t classes, const std::string& path);

}  // namespace mpi4dl
