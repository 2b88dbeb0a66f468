#include "data/image_csv.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <set>

#include "base/error.hpp"
#include "base/nearest_name.hpp"
#include "base/random.hpp"
#include "base/trimmed.hpp"
#include "base/utf8.hpp"
#include "data/csv.hpp"

namespace mpi4dl {
namespace {

/// Returns the whole text as a number, if it is one.
template <typename Number>
std::optional<Number> number_in(const std::string& text) {
  Number number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// Normalises a name, so that "Label " is a label too: a column that is left out because of a
/// capital would go unnoticed.
std::string column_name(const std::string& text) {
  std::string name = trimmed(text);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return name;
}

/// Says where each kind of field stands in a row; behind its end where there is no such column.
struct Columns {
  size_t path = 0, label = 0, split = 0, patient = 0;
  std::vector<std::string> others;

  Columns(const CsvRow& header, const std::string& file) {
    std::vector<std::string> names(header.fields.size());
    std::transform(header.fields.begin(), header.fields.end(), names.begin(), column_name);
    std::vector<std::string> absent;
    const auto find = [&](const char* name) {
      const auto place = std::find(names.begin(), names.end(), name);
      validate(place == names.end() || std::find(place + 1, names.end(), name) == names.end(),
               "the first line of {} names the column {} twice", file, name);
      if (place == names.end()) absent.emplace_back(name);
      return static_cast<size_t>(place - names.begin());
    };
    path = find("path");
    label = find("label");
    split = find("split");
    patient = find("patient");
    validate(path < names.size(),
             "the first line of {} is '{}'; it must name the columns: path and, if you like, "
             "label, split and patient",
             file, fmt::join(header.fields, ","));
    for (size_t i = 0; i < names.size(); ++i)
      if (i != path && i != label && i != split && i != patient) add_other(names[i], absent, file);
  }

 private:
  /// Refuses what is nearly a column that is not there: its patients would be in both parts.
  void add_other(const std::string& name, const std::vector<std::string>& absent,
                 const std::string& file) {
    const std::string meant = suggestion(name, absent);
    validate(meant.empty(), "{} has a column {}{}; rename it", file, name, meant);
    others.push_back(name);
  }
};

ListedImage listed(const CsvRow& row, const Columns& columns, const std::filesystem::path& folder,
                   const std::string& file) {
  ListedImage image;
  const std::string name = trimmed(row.fields[columns.path]);
  validate(!name.empty(), "{}, line {}: the path is empty", file, row.line);
  image.path = (folder / name).string();
  image.key = key_of(name);
  if (columns.patient < row.fields.size()) image.patient = trimmed(row.fields[columns.patient]);
  if (columns.split < row.fields.size()) {
    const std::string text = trimmed(row.fields[columns.split]);
    validate(text == "train" || text == "val", "{}, line {}: split is '{}'; use train or val", file,
             row.line, text);
    image.validation = text == "val";
  }
  return image;
}

/// Collects labels, which are all indices of classes, or all names of classes, or not there.
class Labels {
 public:
  explicit Labels(std::string file) : file_(std::move(file)) {}

  void add(const CsvRow& row, size_t column) {
    texts_.push_back(column < row.fields.size() ? trimmed(row.fields[column]) : "");
    if (texts_.back().empty()) return;
    auto& first = number(texts_.back(), row.line) ? first_number_ : first_name_;
    if (first == 0) first = row.line;
    validate(first_number_ == 0 || first_name_ == 0,
             "{}: line {} has the number of a class for a label and line {} the name of one; use "
             "names throughout, or numbers",
             file_, first_number_, first_name_);
  }

  void set(ImageList& list) const {
    std::set<std::string> names(texts_.begin(), texts_.end());
    names.erase("");
    if (first_name_ > 0) list.classes.assign(names.begin(), names.end());
    const auto label = [&](const std::string& text) {
      if (first_name_ == 0) return *number_in<int64_t>(text);
      return std::ranges::lower_bound(list.classes, text) - list.classes.begin();
    };
    for (size_t i = 0; i < texts_.size(); ++i)
      if (!texts_[i].empty()) list.images[i].label = label(texts_[i]);
  }

 private:
  /// Returns true for the index of a class, false for a name.
  bool number(const std::string& text, int64_t line) const {
    validate(is_utf8(text), "{}, line {}: the label '{}' is not UTF-8", file_, line, text);
    const auto whole = number_in<int64_t>(text);
    const bool counts = whole && *whole >= 0;
    const bool name =  // "nan" would be one
        text.find_first_of("0123456789") == std::string::npos || !number_in<double>(text);
    validate(counts || name,
             "{}, line {}: the label '{}' is not a number of a class: they are 0, 1, 2, ...", file_,
             line, text);
    return counts;
  }

  std::string file_;
  std::vector<std::string> texts_;
  int64_t first_number_ = 0, first_name_ = 0;  // lines; 0: none yet
};

}  // namespace

ImageList list_csv(const std::string& path) {
  const std::vector<CsvRow> rows = read_csv(path);
  validate(!rows.empty(), "{} is empty; its first line must be path,label", path);
  for (const std::string& name : rows[0].fields)
    validate(std::ranges::none_of(name, [](unsigned char c) { return std::iscntrl(c) != 0; }),
             "{} is neither an image that libvips knows nor a CSV file", path);
  const Columns columns(rows[0], path);
  ImageList list;
  list.has_split = columns.split < rows[0].fields.size();
  list.unused_columns = columns.others;
  Labels labels(path);
  for (auto row = rows.begin() + 1; row != rows.end(); ++row) {
    validate(row->fields.size() == rows[0].fields.size(), "{}, line {}: {} fields instead of {}",
             path, row->line, row->fields.size(), rows[0].fields.size());
    list.images.push_back(listed(*row, columns, std::filesystem::path(path).parent_path(), path));
    labels.add(*row, columns.label);
  }
  validate(!list.images.empty(), "{} names no images", path);
  labels.set(list);
  return list;
}

}  // namespace mpi4dl
