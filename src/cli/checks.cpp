#include "cli/checks.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <functional>
#include <string>

namespace mpi4dl {
namespace {

CLI::Validator number_check(const std::function<bool(double)>& right, const std::string& range,
                            const std::string& words) {
  const auto check = [right, words](const std::string& text) -> std::string {
    double number = 0;
    const bool is_number = CLI::detail::lexical_cast(text, number);
    return is_number && std::isfinite(number) && right(number)
               ? ""
               : fmt::format("{} is not a number {}", text, words);
  };
  return {check, range};
}

/// Returns whether these are digits alone, behind a sign perhaps, and the first of them counts.
bool is_whole_number(const std::string& text) {
  const size_t first = text.starts_with("-") || text.starts_with("+") ? 1 : 0;
  const std::string digits = text.substr(first);
  const bool octal = digits.size() > 1 && digits.front() == '0';
  return !digits.empty() && !octal && digits.find_first_not_of("0123456789") == std::string::npos;
}

bool is_too_large(const std::string& text) {
  int64_t number = 0;
  const char* begin = text.data() + (text.starts_with("+") ? 1 : 0);
  const auto result = std::from_chars(begin, text.data() + text.size(), number);
  return result.ec == std::errc::result_out_of_range;
}

}  // namespace

CLI::Validator at_least(double least) {
  return number_check([least](double number) { return number >= least; },
                      fmt::format(">={}", least), fmt::format("of at least {}", least));
}

CLI::Validator more_than(double bound) {
  return number_check([bound](double number) { return number > bound; }, fmt::format(">{}", bound),
                      fmt::format("above {}", bound));
}

void check_whole_numbers(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  if (!type.starts_with("INT") && !type.starts_with("UINT")) return;
  for (const std::string& result : option.results()) {
    const std::string text = CLI::detail::trim_copy(result);  // of a list such as 3, 2
    if (!is_whole_number(text))
      throw CLI::ValidationError(option.get_name(), text + " is not a whole number");
    if (is_too_large(text)) throw CLI::ValidationError(option.get_name(), text + " is too large");
  }
}

std::string in_plain_words(const CLI::ParseError& error) {
  const std::string words = error.what(), convert = "Could not convert: ", between = " = ";
  if (words.starts_with(convert)) {
    const size_t end = words.find(between);
    const std::string text = words.substr(end + between.size());
    return fmt::format("{}: {} is {}", words.substr(convert.size(), end - convert.size()), text,
                       is_whole_number(text) ? "too large" : "not a whole number");
  }
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) == nullptr) return words;
  const std::string name = words.substr(0, words.find(':'));
  return name + (words.ends_with(" missing") ? " has no value" : " is given more than once");
}

CLI::Option* default_in_words(CLI::Option* option, const std::string& words) {
  option->description(fmt::format("{} (default: {})", option->get_description(), words));
  return option->default_str("");
}

}  // namespace mpi4dl
