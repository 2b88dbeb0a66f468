#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mpi4dl {

// What the text form of a graph consists of: names, numbers and signs.

inline constexpr std::string_view kFrozen = "frozen";

/// Returns whether a letter may stand in a name without quotes.
bool is_plain(char letter);

/// Returns a name as it stands in the text: in quotes where it must be.
std::string name_text(const std::string& name);

/// Returns a number; both throw UsageError where the text is none.
double real_number(std::string_view text);
/// Returns a whole number that is no larger than any option.
int64_t whole_number(std::string_view text);

/// Returns the elements of "3x16x20".
template <typename T>
std::vector<T> read_list(std::string_view text, T (*read)(std::string_view)) {
  std::vector<T> values;
  while (true) {
    const size_t end = std::min(text.find('x'), text.size());
    values.push_back(read(text.substr(0, end)));
    if (end == text.size()) return values;
    text.remove_prefix(end + 1);
  }
}

/// Takes names, numbers and signs off the front of a line.
class LineReader {
 public:
  explicit LineReader(std::string_view line) : rest_(line) {}

  /// Returns whether nothing follows, or a comment.
  bool at_end();
  /// Takes this sign, if it is the next thing.
  bool take(char sign);
  void expect(char sign);
  /// Takes a name that is this word.
  bool take_word(std::string_view word);
  std::string name();
  /// Takes what stands before the next space.
  std::string_view word();

 private:
  void skip_spaces();
  std::string quoted();

  std::string_view rest_;
};

}  // namespace mpi4dl
