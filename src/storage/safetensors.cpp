#include "storage/safetensors.hpp"

#include <ATen/ATen.h>

#include <array>
#include <bit>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.hpp"
#include "storage/bounded_json.hpp"

namespace mpi4dl {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

constexpr uint64_t kLongestHeader = 100'000'000;  // which safetensors itself has
constexpr size_t kMostSizes = 64;

constexpr std::array<std::pair<const char*, c10::ScalarType>, 10> kTypes{{
    {"F64", c10::ScalarType::Double},
    {"F32", c10::ScalarType::Float},
    {"F16", c10::ScalarType::Half},
    {"BF16", c10::ScalarType::BFloat16},
    {"I64", c10::ScalarType::Long},
    {"I32", c10::ScalarType::Int},
    {"I16", c10::ScalarType::Short},
    {"I8", c10::ScalarType::Char},
    {"U8", c10::ScalarType::Byte},
    {"BOOL", c10::ScalarType::Bool},
}};

/// Returns a header padded with spaces, so that the tensors begin at a multiple of 8.
std::string header_of(const TensorMap& tensors) {
  nlohmann::ordered_json header;
  header["__metadata__"] = {{"format", "pt"}};
  int64_t end = 0;
  for (const auto& [name, values] : tensors) {
    const int64_t begin = std::exchange(end, end + static_cast<int64_t>(values.nbytes()));
    header[name] = {{"dtype", safetensors_type(values.scalar_type())},
                    {"shape", values.sizes().vec()},
                    {"data_offsets", {begin, end}}};
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

/// Returns -1 where that is too large a number, or a length is negative.
int64_t bytes_of(const TensorInfo& info) {
  auto bytes = static_cast<int64_t>(c10::elementSize(info.type));
  for (const int64_t length : info.shape)
    if (length < 0 || __builtin_mul_overflow(bytes, length, &bytes)) return -1;
  return bytes;
}

std::vector<int64_t> whole_numbers(const nlohmann::json& values) {
  ensure(values.is_array() && values.size() <= kMostSizes,
         "a shape or a place is no list of sizes");
  std::vector<int64_t> found;
  for (const nlohmann::json& value : values) found.push_back(whole_number(value));
  return found;
}

/// Reads the header of a file, whose first 8 bytes say how long it is.
std::string read_header(const std::string& path) {
  const auto size = static_cast<uint64_t>(file_size(path));
  uint64_t length = 0;
  ensure(size >= sizeof(length), "it has only {} bytes", size);
  read_range(path, 0, &length, sizeof(length));
  ensure(length <= size - sizeof(length), "its header is longer than the file");
  ensure(length <= kLongestHeader, "its header has {} bytes", length);
  std::string text(length, ' ');
  read_range(path, sizeof(length), text.data(), text.size());
  return text;
}

}  // namespace

std::string safetensors_type(c10::ScalarType type) {
  for (const auto& [name, known] : kTypes)
    if (known == type) return name;
  throw Error(fmt::format("safetensors has no name for tensors of {}", c10::toString(type)));
}

c10::ScalarType type_from_safetensors(const std::string& name) {
  for (const auto& [known, type] : kTypes)
    if (known == name) return type;
  throw Error(fmt::format("'{}' is no type of safetensors", name));
}

Digest write_safetensors(const std::string& path, const TensorMap& tensors) {
  const std::string header = header_of(tensors);
  const uint64_t length = header.size();
  DurableFile file(path);
  file.write(&length, sizeof(length));
  file.write(header.data(), header.size());
  for (const auto& [name, values] : tensors) {
    const at::Tensor plain = values.cpu().contiguous();
    file.write(plain.data_ptr(), plain.nbytes());
  }
  return file.finish();
}

SafetensorsFile::SafetensorsFile(std::string path) : path_(std::move(path)) {
  try {
    const std::string text = read_header(path_);
    const auto data = static_cast<int64_t>(sizeof(uint64_t) + text.size());
    const int64_t size = file_size(path_);
    const auto header = parse_bounded(text, "header");
    ensure(header.is_object(), "its header is no object");
    for (const auto& [name, entry] : header.items()) {
      if (name == "__metadata__") continue;
      const TensorInfo info{type_from_safetensors(entry.at("dtype")),
                            whole_numbers(entry.at("shape"))};
      const std::vector<int64_t> place = whole_numbers(entry.at("data_offsets"));
      ensure(place.size() == 2 && 0 <= place[0] && place[0] <= place[1] &&
                 place[1] - place[0] == bytes_of(info) && place[1] <= size - data,
             "the place of '{}' is not in the file", name);
      tensors_[name] = info;
      begin_[name] = data + place[0];
    }
  } catch (const std::exception& error) {
    throw Error(fmt::format("'{}' is no safetensors file: {}", path_, error.what()));
  }
}

at::Tensor SafetensorsFile::read(const std::string& name) const {
  const TensorInfo& info = tensors_.at(name);
  at::Tensor values = at::empty(info.shape, info.type);
  read_range(path_, begin_.at(name), values.data_ptr(), values.nbytes());
  return values;
}

}  // namespace mpi4dl
