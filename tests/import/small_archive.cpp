#include "small_archive.hpp"

#include <zlib.h>

namespace mpi4dl::testing {
namespace {

template <typename T>
void append(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

/// Appends what header and directory have in common: versions, method, time, checksum, sizes.
void append_description(std::string& bytes, const ArchiveEntry& entry, int64_t size,
                        const std::string& name) {
  append<uint16_t>(bytes, 20);
  append<uint16_t>(bytes, 0);
  append<uint16_t>(bytes, static_cast<uint16_t>(entry.method));
  append<uint32_t>(bytes, 0);
  const auto* data = reinterpret_cast<const Bytef*>(entry.bytes.data());
  append<uint32_t>(bytes, static_cast<uint32_t>(crc32_z(0, data, entry.bytes.size())));
  append<uint32_t>(bytes, static_cast<uint32_t>(size));
  append<uint32_t>(bytes, static_cast<uint32_t>(size));
  append<uint16_t>(bytes, static_cast<uint16_t>(name.size()));
  append<uint16_t>(bytes, 0);
}

}  // namespace

std::string archive_bytes(const std::vector<ArchiveEntry>& entries) {
  std::string bytes, directory;
  for (const ArchiveEntry& entry : entries) {
    const int64_t place = static_cast<int64_t>(bytes.size());
    const auto size = static_cast<int64_t>(entry.bytes.size());
    const std::string& name = entry.name_in_header.empty() ? entry.name : entry.name_in_header;
    bytes += "PK\3\4";
    append_description(bytes, entry, size, name);
    bytes += name + entry.bytes;
    directory += "PK\1\2";
    append<uint16_t>(directory, 20);
    append_description(directory, entry, entry.said_bytes < 0 ? size : entry.said_bytes,
                       entry.name);
    directory += std::string(10, '\0');
    append<uint32_t>(directory,
                     static_cast<uint32_t>(entry.said_place < 0 ? place : entry.said_place));
    directory += entry.name;
  }
  const size_t place = bytes.size();
  bytes += directory + std::string("PK\5\6\0\0\0\0", 8);
  append<uint16_t>(bytes, static_cast<uint16_t>(entries.size()));
  append<uint16_t>(bytes, static_cast<uint16_t>(entries.size()));
  append<uint32_t>(bytes, static_cast<uint32_t>(directory.size()));
  append<uint32_t>(bytes, static_cast<uint32_t>(place));
  append<uint16_t>(bytes, 0);
  return bytes;
}

std::string model_json(const std::string& nodes) {
  const std::string relu =
      R"({"target": "torch.ops.aten.relu.default", "inputs": [{"name": "self", "arg": {"as_tensor": {"name": "x"}}}],
          "outputs": [{"as_tensor": {"name": "y"}}], "metadata": {}})";
  return R"({"torch_version": "2.15.0", "verifiers": ["TRAINING"], "graph_module": {
    "graph": {"nodes": [)" +
         (nodes.empty() ? relu : nodes) + R"(],
      "tensor_values": {"x": {"sizes": [{"as_int": 2}, {"as_int": 2}, {"as_int": 4}, {"as_int": 4}]}}},
    "signature": {"input_specs": [{"user_input": {"arg": {"as_tensor": {"name": "x"}}}}],
      "output_specs": [{"user_output": {"arg": {"as_tensor": {"name": "y"}}}}]}}})";
}

std::string model_archive(const std::string& json) {
  const std::string none = R"({"config": {}})";
  return archive_bytes({{"net/models/model.json", json},
                        {"net/data/weights/model_weights_config.json", none},
                        {"net/data/constants/model_constants_config.json", none}});
}

}  // namespace mpi4dl::testing
