#include "data/image_size.hpp"

#include <regex>

#include "base/error.hpp"

namespace mpi4dl {

ImageSize parse_image_size(const std::string& flag, const std::string& text) {
  static const std::regex form("([1-9][0-9]{0,8})(?:x([1-9][0-9]{0,8}))?");
  std::smatch match;
  validate(std::regex_match(text, match, form),
           "{} {} is not a size; use one number such as 512, or height x width such as 512x768",
           flag, text);
  const int64_t height = std::stoll(match[1]);
  return {height, match[2].matched ? std::stoll(match[2]) : height};
}

}  // namespace mpi4dl
