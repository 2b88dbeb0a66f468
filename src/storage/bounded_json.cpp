#include "storage/bounded_json.hpp"

#include <nlohmann/json.hpp>

#include "base/error.hpp"

namespace mpi4dl {
namespace {

constexpr int kDeepest = 64;
constexpr int64_t kMostBytes = int64_t{512} << 20;  // of what a text becomes, about
constexpr int64_t kValue = 16, kText = 32, kList = 40, kObject = 64, kKey = 80;
constexpr size_t kLongestReason = 200;  // it quotes the text

/// Counts depth, and the bytes that nlohmann's values would have, and makes nothing. (The parser's
/// own callback takes a time that grows with the square of an array's length.)
class Bounds : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Bounds(const std::string& name) : name_(name) {}

  bool null() override { return count(); }
  bool boolean(bool /*value*/) override { return count(); }
  bool number_integer(int64_t /*value*/) override { return count(); }
  bool number_unsigned(uint64_t /*value*/) override { return count(); }
  bool number_float(double /*value*/, const std::string& /*text*/) override { return count(); }
  bool string(std::string& value) override { return count(kText + std::ssize(value)); }
  bool binary(binary_t& /*value*/) override { return count(); }
  bool key(std::string& value) override { return count(kKey + std::ssize(value)); }
  bool start_object(size_t /*size*/) override { return begin(kObject); }
  bool start_array(size_t /*size*/) override { return begin(kList); }
  bool end_object() override { return end(); }
  bool end_array() override { return end(); }
  /// It is told when the text is parsed.
  bool parse_error(size_t /*at*/, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*error*/) override {
    return false;
  }

 private:
  bool count(int64_t more = 0) {
    bytes_ += kValue + more;
    ensure(bytes_ <= kMostBytes, "its {} has values for more than {} MiB", name_, kMostBytes >> 20);
    return true;
  }
  bool begin(int64_t more) {
    ensure(++depth_ <= kDeepest, "its {} is nested more than {} deep", name_, kDeepest);
    return count(more);
  }
  bool end() {
    --depth_;
    return true;
  }

  const std::string& name_;
  int depth_ = 0;
  int64_t bytes_ = 0;
};

}  // namespace

nlohmann::json parse_bounded(const std::string& text, const std::string& name) {
  Bounds bounds(name);
  nlohmann::json::sax_parse(text, &bounds);
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::exception& error) {
    throw Error(fmt::format("its {} is no JSON: {}", name,
                            std::string(error.what()).substr(0, kLongestReason)));
  }
}

int64_t whole_number(const nlohmann::json& value) {
  const bool fits = value.is_number_integer() &&
                    (!value.is_number_unsigned() || value.get<uint64_t>() <= INT64_MAX);
  ensure(fits, "'{}' is no whole number", value.dump().substr(0, kLongestReason));
  return value.get<int64_t>();
}

}  // namespace mpi4dl
