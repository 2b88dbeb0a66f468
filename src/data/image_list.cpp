#include "data/image_list.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>
#include <string_view>
#include <unordered_map>

#include "base/error.hpp"
#include "base/random.hpp"
#include "base/utf8.hpp"
#include "data/image_csv.hpp"
#include "data/image_file.hpp"

namespace mpi4dl {
namespace {

namespace fs = std::filesystem;

bool hidden(const fs::path& path) {
  return path.filename().string().starts_with('.');
}

/// Returns the first image right in a folder, by name; empty: none.
std::string image_beside(const fs::path& folder) {
  std::string first;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!hidden(name) && has_image_name(name) && !entry.is_directory() &&
        (first.empty() || name < first))
      first = name;
  }
  return first;
}

std::vector<std::string> folders_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.is_directory() && !hidden(entry.path()) &&
        !fs::exists(entry.path().string() + ".mrxs"))  // then it is a part of that slide
      names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

/// Returns the paths of all images below a folder, relative to it, sorted.
std::vector<std::string> images_below(const fs::path& folder) {
  std::vector<std::string> names;
  for (auto at = fs::recursive_directory_iterator(folder); at != fs::end(at); ++at) {
    if (hidden(at->path())) {
      if (at->is_directory()) at.disable_recursion_pending();
    } else if (has_image_name(at->path().string()) && !at->is_directory()) {
      names.push_back(at->path().lexically_relative(folder).generic_string());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// Adds the images of one class, or of none, in a folder below the root; returns how many.
size_t add_images(const fs::path& root, const std::string& below, int64_t label, bool validation,
                  ImageList& list) {
  const fs::path folder = root / below;
  const std::vector<std::string> names = images_below(folder);
  for (const std::string& name : names)
    list.images.push_back({(folder / name).string(), label,
                           key_of((fs::path(below) / name).generic_string()), validation});
  return names.size();
}

void add_classes(const fs::path& root, const std::string& below, bool validation, ImageList& list) {
  for (const std::string& name : folders_in(root / below)) {
    const auto place = std::find(list.classes.begin(), list.classes.end(), name);
    validate(place != list.classes.end(), "{} has a class '{}' that {} does not have",
             (root / below).string(), name, (root / "train").string());
    const std::string folder = (fs::path(below) / name).generic_string();
    const size_t found = add_images(root, folder, place - list.classes.begin(), validation, list);
    validate(found > 0, "the folder {} of a class has no images; their names end in {}",
             (root / folder).string(), image_endings());
  }
}

/// Refuses folders that look like parts of a data set, of which a classifier would tell the one
/// from the other.
void check_class_names(const fs::path& root, const std::vector<std::string>& names) {
  static const std::set<std::string> kParts{"train",      "training", "val",  "valid",
                                            "validation", "test",     "eval", "holdout"};
  for (std::string name : names) {
    const std::string folder = name;
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
    validate(!kParts.contains(name) || folders_in(root / folder).empty(),
             "{} has a folder {} with folders in it, which is a part of a data set and no class; "
             "name the parts train and val, or give one of them alone",
             root.string(), folder);
  }
}

ImageList list_folder(const fs::path& root) {
  ImageList list;
  const std::vector<std::string> folders = folders_in(root);
  list.has_split = fs::is_directory(root / "train") && fs::is_directory(root / "val");
  list.classes = list.has_split ? folders_in(root / "train") : folders;
  if (list.has_split) {
    add_classes(root, "train", false, list);
    add_classes(root, "val", true, list);
  } else if (!folders.empty()) {
    check_class_names(root, folders);
    add_classes(root, "", false, list);
    list.loose = image_beside(root);
  } else {
    add_images(root, "", ListedImage::kUnknown, false, list);
  }
  validate(!list.images.empty(),
           "{} has neither a folder of images for each class nor images; their names end in {}",
           root.string(), image_endings());
  for (const std::string& name : list.classes)
    validate(is_utf8(name), "{}: the name of the class '{}' is not UTF-8; rename its folder",
             root.string(), name);
  return list;
}

/// Returns one name for a file, through whichever links it is reached.
std::string file_behind(const std::string& path) {
  std::error_code missing;  // is said when the file is opened
  const fs::path file = fs::canonical(path, missing);
  return (missing ? fs::absolute(path).lexically_normal() : file).string();
}

ImageList list_one(const fs::path& path) {
  return {.classes = {},
          .images = {{.path = path.string(), .key = key_of(path.filename().string())}}};
}

}  // namespace

uint64_t ListedImage::group() const {
  return patient.empty() ? key : combine_keys(key_of("patient"), key_of(patient));
}

ImageList list_images(const std::string& path) {
  try {
    validate(fs::exists(path), "there is no folder, CSV file or image {}", path);
    if (fs::is_directory(path)) return list_folder(path);
    return is_image_file(path) ? list_one(path) : list_csv(path);
  } catch (const fs::filesystem_error& error) {
    throw UsageError(
        fmt::format("cannot look into {}: {}", error.path1().string(), error.code().message()));
  }
}

void check_classes(const ImageList& list, int64_t classes, const std::string& path) {
  const auto count = static_cast<int64_t>(list.classes.size());
  validate(count == 0 || count == classes,
           "{} has {} classes ({}), but the number of classes is {}; use {}", path, count,
           fmt::join(list.classes, ", "), classes, count);
  for (const ListedImage& image : list.images)
    validate(image.label < classes,
             "{}: {} has label {}, but the number of classes is {}, so the largest is {}", path,
             image.path, image.label, classes, classes - 1);
}

void check_labels(const ImageList& list) {
  const auto words = [&](int64_t label) {
    return list.classes.empty() ? std::to_string(label) : list.classes.at(label);
  };
  std::unordered_map<std::string_view, int64_t> labels;
  for (const ListedImage& image : list.images) {
    validate(image.label != ListedImage::kUnknown,
             "nothing says which class {} has; use a folder for each class, or a column label in a "
             "CSV file; mpi4dl predict needs no classes",
             image.path);
    const int64_t before = labels.try_emplace(image.path, image.label).first->second;
    validate(before == image.label, "{} is said to be {} and {}; an image has one class",
             image.path, words(before), words(image.label));
  }
}

void match_classes(ImageList& list, const std::vector<std::string>& known,
                   const std::string& path) {
  if (list.classes.empty() || known.empty()) return;
  std::vector<int64_t> places;
  for (const std::string& name : list.classes) {
    const auto place = std::find(known.begin(), known.end(), name);
    validate(place != known.end(),
             "{} has a class '{}' that the model does not know: its classes are {}; images whose "
             "class does not matter go into a CSV file without labels, or one folder",
             path, name, fmt::join(known, ", "));
    places.push_back(place - known.begin());
  }
  for (ListedImage& image : list.images)
    if (image.label != ListedImage::kUnknown) image.label = places.at(image.label);
  list.classes = known;
}

void check_apart(const ImageList& list, const std::vector<bool>& validation,
                 const std::string& path) {
  if (std::ranges::find(validation, true) == validation.end()) return;
  std::unordered_map<std::string, size_t> files, patients;  // the first image of each
  const auto check = [&](auto& seen, const std::string& key, const std::string& what, size_t i) {
    const size_t first = seen.try_emplace(key, i).first->second;
    validate(validation[first] == validation[i],
             "{}: {} is in the training part and in the validation part ({} and {}); it belongs "
             "into one of them",
             path, what, list.images[first].path, list.images[i].path);
  };
  for (size_t i = 0; i < list.images.size(); ++i) {
    const ListedImage& image = list.images[i];
    check(files, file_behind(image.path), image.path, i);
    if (!image.patient.empty()) check(patients, image.patient, "patient " + image.patient, i);
  }
}

}  // namespace mpi4dl
