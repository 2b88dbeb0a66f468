#include "base/byte_size.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <regex>

#include "base/error.hpp"

namespace mpi4dl {
namespace {

constexpr std::array kUnits{"B", "KiB", "MiB", "GiB", "TiB"};

}  // namespace

int64_t parse_byte_size(const std::string& flag, const std::string& text) {
  static const std::regex form("([0-9]{1,15}(?:\\.[0-9]{1,9})?)(?:([KMGT])(i?B)?|B)?",
                               std::regex::icase);
  std::smatch match;
  const bool read = std::regex_match(text, match, form);
  double bytes = read ? std::stod(match[1]) : 0;
  if (read && match[2].matched) {
    const bool decimal = match[3].matched && match[3].length() == 1;
    const auto power = std::string("KMGT").find(static_cast<char>(std::toupper(*match[2].first)));
    bytes *= std::pow(decimal ? 1000.0 : 1024.0, static_cast<double>(power + 1));
  }
  constexpr double kMost = 9e18;
  validate(read && bytes >= 1 && bytes < kMost,
           "{} {} is not a size of memory; use a number with a unit, such as 32G, 512M or 40GB",
           flag, text);
  return static_cast<int64_t>(bytes);
}

std::string readable_bytes(int64_t bytes) {
  auto number = static_cast<double>(bytes);
  size_t unit = 0;
  for (; number >= 999.5 && unit + 1 < kUnits.size(); ++unit) number /= 1024;
  const int digits = unit == 0 || number >= 99.95 ? 0 : number >= 9.995 ? 1 : 2;
  std::string text = fmt::format("{:.{}f}", number, digits);
  if (digits > 0) text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text + " " + kUnits[unit];
}

}  // namespace mpi4dl
