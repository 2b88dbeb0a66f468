#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mpi4dl {

struct ListedImage {
  static constexpr int64_t kUnknown = -1;

  std::string path = {};
  int64_t label = kUnknown;
  uint64_t key = 0;  ///< from its name below the folder: decides what is held out
  bool validation = false;
  std::string patient = {};  ///< empty where nobody says whose it is

  /// Returns what images that must not be parted have in common: a patient's images, and a file
  /// that is named several times.
  uint64_t group() const;
};

/// Lists the image files of a data set and their classes, found without a look at their pixels.
struct ImageList {
  std::vector<std::string> classes;  ///< sorted names; none where a CSV file has numbers or nothing
  std::vector<ListedImage> images;   ///< in an order that is the same on every machine
  bool has_split = false;            ///< it says itself what is for validation
  std::vector<std::string> unused_columns = {};  ///< of a CSV file
  std::string loose = {};  ///< an image beside the folders of classes, where such are left out
};

/// Lists what lies under a path. A folder has a folder for each class, whose sorted names are the
/// classes, and images anywhere below; or `train` and `val`, which are such folders; or images
/// alone, whose classes are unknown. A file is an image or a slide, or a CSV file (see list_csv).
/// Throws UsageError where it is none of these.
ImageList list_images(const std::string& path);

/// Throws UsageError where there are other classes than so many.
void check_classes(const ImageList& list, int64_t classes, const std::string& path);

/// Throws UsageError where nobody says which class an image has, or it is said to have two.
void check_labels(const ImageList& list);

/// Numbers the classes as a model does that knows these names, if both have names; some of them
/// will do. Throws UsageError where there is one that the model does not know.
void match_classes(ImageList& list, const std::vector<std::string>& known, const std::string& path);

/// Throws UsageError where a file or a patient is in both parts. `validation`: by image.
void check_apart(const ImageList& list, const std::vector<bool>& validation,
                 const std::string& path);

}  // namespace mpi4dl
