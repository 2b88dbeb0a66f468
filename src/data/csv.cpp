#include "data/csv.hpp"

#include <fstream>
#include <iterator>

#include "base/error.hpp"
#include "base/utf8.hpp"

namespace mpi4dl {
namespace {

std::string whole_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  validate(in.good(), "cannot read {}", path);
  std::string text((std::istreambuf_iterator<char>(in)), {});
  if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
  return text;
}

class CsvReader {
 public:
  explicit CsvReader(const std::string& path) : path_(path), text_(whole_file(path)) {}

  std::vector<CsvRow> rows() {
    std::vector<CsvRow> rows;
    while (at_ < text_.size()) {
      CsvRow row = next_row();
      if (row.fields.size() > 1 || !row.fields[0].empty()) rows.push_back(std::move(row));
    }
    return rows;
  }

 private:
  CsvRow next_row() {
    CsvRow row{line_, {}};
    bool more = true;
    while (more) {
      row.fields.push_back(next_field());
      more = at_ < text_.size() && text_[at_] == ',';
      ++at_;  // behind the comma, or the end of the line
    }
    return row;
  }

  /// Stops at the comma or the end of the line behind it.
  std::string next_field() {
    std::string field;
    bool quoted = false;
    const int64_t begin = line_;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (quoted && c == '"' && at_ + 1 < text_.size() && text_[at_ + 1] == '"') {
        field += text_[++at_];
      } else if (c == '"') {
        quoted = !quoted;
      } else if (!quoted && (c == ',' || c == '\n')) {
        break;
      } else if (quoted || c != '\r') {
        field += c;
      }
      if (c == '\n') ++line_;
    }
    validate(!quoted, "{}, line {}: a quote is never closed", path_, begin);
    if (at_ < text_.size() && text_[at_] == '\n') ++line_;
    return field;
  }

  std::string path_, text_;
  size_t at_ = 0;
  int64_t line_ = 1;
};

}  // namespace

std::vector<CsvRow> read_csv(const std::string& path) {
  return CsvReader(path).rows();
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string result = "\"";
  for (const char c : text) result += c == '"' ? "\"\"" : std::string(1, c);
  return result + '"';
}

}  // namespace mpi4dl
