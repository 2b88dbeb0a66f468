#include "graph/line_reader.hpp"

#include <charconv>

#include "base/error.hpp"

namespace mpi4dl {
namespace {

constexpr int64_t kLargest = int64_t{1} << 30;

template <typename T>
T number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  validate(error == std::errc() && end == text.data() + text.size(), "'{}' is no number",
           std::string(text));
  return value;
}

}  // namespace

bool is_plain(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
         (letter >= '0' && letter <= '9') ||
         std::string_view("_.-/").find(letter) != std::string_view::npos;
}

std::string name_text(const std::string& name) {
  if (!name.empty() && name != kFrozen && std::ranges::all_of(name, is_plain)) return name;
  std::string text = "\"";
  for (const char letter : name) {
    if (letter == '\n') {
      text += "\\n";
      continue;
    }
    if (letter == '"' || letter == '\\') text += '\\';
    text += letter;
  }
  return text + '"';
}

double real_number(std::string_view text) {
  return number<double>(text);
}

int64_t whole_number(std::string_view text) {
  const auto value = number<int64_t>(text);
  validate(value >= -kLargest && value <= kLargest, "{} is too large", value);
  return value;
}

bool LineReader::at_end() {
  skip_spaces();
  return rest_.empty() || rest_.front() == '#';
}

bool LineReader::take(char sign) {
  if (at_end() || rest_.front() != sign) return false;
  rest_.remove_prefix(1);
  return true;
}

void LineReader::expect(char sign) {
  validate(take(sign), "there is no '{}' before '{}'", sign, std::string(rest_.substr(0, 20)));
}

bool LineReader::take_word(std::string_view word) {
  skip_spaces();
  const bool next =
      rest_.starts_with(word) && (rest_.size() == word.size() || !is_plain(rest_[word.size()]));
  if (next) rest_.remove_prefix(word.size());
  return next;
}

std::string LineReader::name() {
  if (take('"')) return quoted();
  size_t end = 0;
  while (end < rest_.size() && is_plain(rest_[end])) ++end;
  validate(end > 0, "there is no name before '{}'", std::string(rest_.substr(0, 20)));
  const std::string name(rest_.substr(0, end));
  rest_.remove_prefix(end);
  return name;
}

std::string_view LineReader::word() {
  skip_spaces();
  const std::string_view word = rest_.substr(0, std::min(rest_.find(' '), rest_.size()));
  rest_.remove_prefix(word.size());
  return word;
}

void LineReader::skip_spaces() {
  while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\t')) rest_.remove_prefix(1);
}

std::string LineReader::quoted() {
  std::string name;
  for (bool escaped = false; !rest_.empty();) {
    const char letter = rest_.front();
    rest_.remove_prefix(1);
    if (!escaped && letter == '"') return name;
    if (!escaped && letter == '\\') {
      escaped = true;
      continue;
    }
    name += escaped && letter == 'n' ? '\n' : letter;
    escaped = false;
  }
  throw UsageError("a name in quotes has no end");
}

}  // namespace mpi4dl
