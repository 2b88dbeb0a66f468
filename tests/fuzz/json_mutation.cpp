#include "json_mutation.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

extern "C" size_t LLVMFuzzerMutate(unsigned char* data, size_t bytes, size_t most);

namespace mpi4dl::fuzz {
namespace {

using Json = nlohmann::json;

/// Are the numbers at which arithmetic with sizes goes wrong, if it does.
constexpr int64_t kNumbers[] = {0,          1,
                                2,          3,
                                -1,         -2,
                                64,         1 << 16,
                                1 << 30,    int64_t{1} << 31,
                                1LL << 40,  int64_t{1} << 46,
                                1LL << 53,  int64_t{1} << 62,
                                INT64_MAX,  INT64_MIN,
                                -1LL << 30, -(int64_t{1} << 40)};

class Mutation {
 public:
  Mutation(Json& json, unsigned int seed) : random_(seed) { collect(json); }

  void run() {
    Json& value = any();
    switch (pick(5)) {
      case 0:
        return change_number();
      case 1:
        value = Json(any());
        return;
      case 2:
        return insert(value);
      case 3:
        return erase(value);
      default:
        return swap_alike(value);
    }
  }

 private:
  void collect(Json& json) {
    all_.push_back(&json);
    for (Json& below : json)
      if (json.is_structured()) collect(below);
  }
  size_t pick(size_t count) { return random_() % count; }
  Json& any() { return *all_[pick(all_.size())]; }

  void change_number() {
    std::vector<Json*> numbers;
    std::ranges::copy_if(all_, std::back_inserter(numbers),
                         [](const Json* value) { return value->is_number(); });
    if (numbers.empty()) return;
    Json& number = *numbers[pick(numbers.size())];
    if (pick(8) == 0)
      number = pick(2) == 0 ? 1e300 : -0.5;
    else
      number = kNumbers[pick(std::size(kNumbers))];
  }
  void insert(Json& value) {
    const Json other(any());
    if (value.is_array())
      value.insert(value.begin() + static_cast<int64_t>(pick(value.size() + 1)), other);
  }
  void erase(Json& value) {
    if (value.empty() || !value.is_structured()) return;
    value.erase(std::next(value.begin(), static_cast<int64_t>(pick(value.size()))));
  }
  /// Takes the place of another value of the same kind, such as the name of another operator.
  void swap_alike(Json& value) {
    for (int tries = 0; tries < 50; ++tries)
      if (Json& other = any(); other.type() == value.type() && !value.is_structured())
        return value.swap(other);
  }

  std::mt19937 random_;
  std::vector<Json*> all_;
};

std::string mutated(const std::string& text, unsigned int seed) {
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return text;
  for (unsigned int i = 0; i <= seed % 3; ++i) Mutation(json, seed + i).run();
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

size_t mutate_json_texts(unsigned char* data, size_t bytes, size_t most, unsigned int seed) {
  if (seed % 5 == 0) return LLVMFuzzerMutate(data, bytes, most);
  const std::string all(reinterpret_cast<const char*>(data), bytes);
  // The model more often than what describes its tensors.
  const size_t zero = seed % 4 == 1 ? all.find('\0') : std::string::npos;
  const size_t begin = zero == std::string::npos ? 0 : zero + 1;
  const size_t end = std::min(all.find('\0', begin), all.size());
  const std::string result =
      all.substr(0, begin) + mutated(all.substr(begin, end - begin), seed / 20) + all.substr(end);
  if (result.size() > most) return LLVMFuzzerMutate(data, bytes, most);
  std::ranges::copy(result, data);
  return result.size();
}

}  // namespace mpi4dl::fuzz
