#include "cli/checks.hpp"

#include <fmt/format.h>

#include <functional>
#include <string>

namespace mpi4dl {
namespace {

CLI::Validator number_check(const std::function<bool(double)>& right, const std::string& range,
                            const std::string& words) {
  const auto check = [right, words](const std::string& text) -> std::string {
    double number = 0;
    const bool is_number = CLI::detail::lexical_cast(text, number);
    return is_number && right(number) ? "" : fmt::format("{} is not a number {}", text, words);
  };
  return {check, range};
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

CLI::Option* default_in_words(CLI::Option* option, const std::string& words) {
  option->description(fmt::format("{} (default: {})", option->get_description(), words));
  return option->default_str("");
}

}  // namespace mpi4dl
