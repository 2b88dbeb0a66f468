#include "data/image_list.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>

#include "base/error.hpp"
#include "base/random.hpp"
#include "data/csv.hpp"
#include "data/image_file.hpp"

namespace mpi4dl {
namespace {

namespace fs = std::filesystem;

bool hidden(const fs::path& path) {
  return path.filename().string().starts_with('.');
}

std::vector<std::string> folders_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.is_directory() && !hidden(entry.path()))
      names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

/// Paths of all images below a folder, relative to it, sorted.
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

/// The images of one class, or of none, in a folder below the root. Returns how many.
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

ImageList list_folder(const fs::path& root) {
  ImageList list;
  const std::vector<std::string> folders = folders_in(root);
  list.has_split = fs::is_directory(root / "train") && fs::is_directory(root / "val");
  list.classes = list.has_split ? folders_in(root / "train") : folders;
  if (list.has_split) {
    add_classes(root, "train", false, list);
    add_classes(root, "val", true, list);
  } else if (!folders.empty()) {
    add_classes(root, "", false, list);
  } else {
    add_images(root, "", ListedImage::kUnknown, false, list);
  }
  validate(!list.images.empty(),
           "{} has neither a folder of images for each class nor images; their names end in {}",
           root.string(), image_endings());
  return list;
}

std::optional<int64_t> whole_number(const std::string& text) {
  int64_t number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// Which column has which meaning.
struct Columns {
  size_t path = 0, label = 0, split = 0;

  Columns(const CsvRow& header, const std::string& file) {
    const std::vector<std::string>& names = header.fields;
    const auto find = [&](const char* name) {
      return static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
    };
    path = find("path");
    label = find("label");
    split = find("split");
    const size_t known = (path < names.size()) + (label < names.size()) + (split < names.size());
    validate(path < names.size() && known == names.size(),
             "the first line of {} is '{}'; it must name the columns path,label or "
             "path,label,split",
             file, fmt::join(names, ","));
  }
};

ListedImage listed(const CsvRow& row, const Columns& columns, const fs::path& folder,
                   const std::string& file) {
  ListedImage image;
  const std::string& name = row.fields[columns.path];
  validate(!name.empty(), "{}, line {}: the path is empty", file, row.line);
  image.path = (folder / name).string();
  image.key = key_of(name);
  if (columns.label < row.fields.size()) {
    const std::string& text = row.fields[columns.label];
    const auto number = whole_number(text);
    validate(number && *number >= 0, "{}, line {}: the label '{}' is not a number of a class", file,
             row.line, text);
    image.label = *number;
  }
  if (columns.split < row.fields.size()) {
    const std::string& text = row.fields[columns.split];
    validate(text == "train" || text == "val", "{}, line {}: split is '{}'; use train or val", file,
             row.line, text);
    image.validation = text == "val";
  }
  return image;
}

ImageList list_csv(const fs::path& path) {
  const std::vector<CsvRow> rows = read_csv(path.string());
  validate(!rows.empty(), "{} is empty; its first line must be path,label", path.string());
  const Columns columns(rows[0], path.string());
  ImageList list;
  list.has_split = columns.split < rows[0].fields.size();
  for (auto row = rows.begin() + 1; row != rows.end(); ++row) {
    validate(row->fields.size() == rows[0].fields.size(), "{}, line {}: {} fields instead of {}",
             path.string(), row->line, row->fields.size(), rows[0].fields.size());
    list.images.push_back(listed(*row, columns, path.parent_path(), path.string()));
  }
  validate(!list.images.empty(), "{} names no images", path.string());
  return list;
}

}  // namespace

ImageList list_images(const std::string& path) {
  try {
    validate(fs::exists(path), "there is no folder or CSV file {}", path);
    return fs::is_directory(path) ? list_folder(path) : list_csv(path);
  } catch (const fs::filesystem_error& error) {
    throw UsageError(
        fmt::format("cannot look into {}: {}", error.path1().string(), error.code().message()));
  }
}

void check_classes(const ImageList& list, int64_t classes, const std::string& path) {
  const auto count = static_cast<int64_t>(list.classes.size());
  validate(count == 0 || count == classes,
           "{} has {} classes ({}), but --num-classes is {}; use --num-classes {}", path, count,
           fmt::join(list.classes, ", "), classes, count);
  for (const ListedImage& image : list.images) {
    validate(image.label != ListedImage::kUnknown,
             "nothing says which class {} has; use a folder for each class, or a column label in a "
             "CSV file",
             image.path);
    validate(image.label < classes,
             "{}: {} has label {}, but with --num-classes {} the largest is {}", path, image.path,
             image.label, classes, classes - 1);
  }
}

}  // namespace mpi4dl
