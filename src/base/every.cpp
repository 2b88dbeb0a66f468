#include "base/every.hpp"

#include <regex>

#include "base/error.hpp"

namespace mpi4dl {

bool Every::due(int64_t epoch, int64_t step, int64_t steps) const {
  if (count == 0) return false;
  if (unit == Unit::steps) return ((epoch - 1) * steps + step) % count == 0;
  return step == steps && epoch % count == 0;
}

Every parse_every(const std::string& flag, const std::string& text) {
  if (text.empty()) return {};
  static const std::regex form("([1-9][0-9]{0,11})(steps?|epochs?)?");
  std::smatch match;
  validate(std::regex_match(text, match, form),
           "{} {} is not how often; use a number of epochs such as 2, or of steps such as 500steps",
           flag, text);
  const bool steps = match[2].matched && match[2].str().starts_with("step");
  return {std::stoll(match[1]), steps ? Every::Unit::steps : Every::Unit::epochs};
}

}  // namespace mpi4dl
