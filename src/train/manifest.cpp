#include "train/manifest.hpp"

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "storage/safetensors.hpp"

namespace mpi4dl {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "mpi4dl checkpoint";
// Version 1 called the state of an optimizer momentum/NAME (SGD, Adam) and variation/NAME (Adam).
// Since version 3 a checkpoint may hold the graph of its model, and names more flags.
constexpr int kVersion = 3, kOldestVersion = 1;

/// Returns what a tensor of version 1 is called today.
std::string new_name(const std::string& key, const Json& tensors) {
  const auto rest = [&](const std::string& prefix) { return key.substr(prefix.size()); };
  if (key.starts_with("variation/")) return "exp_avg_sq/" + rest("variation/");
  if (!key.starts_with("momentum/")) return key;
  const std::string parameter = rest("momentum/");
  const bool adam = tensors.contains("variation/" + parameter);
  return (adam ? "exp_avg/" : "momentum_buffer/") + parameter;
}

Json to_json(const DataState& data) {
  return {
      {"epoch", data.position.epoch}, {"step", data.position.step}, {"left_out", data.left_out}};
}

DataState data_from(const Json& json) {
  return {{.epoch = json.at("epoch"), .step = json.at("step")}, json.at("left_out")};
}

}  // namespace

std::string to_json(const Manifest& manifest) {
  Json json{{"format", kFormat},
            {"version", kVersion},
            {"step", manifest.step},
            {"data", to_json(manifest.data)},
            {"must_match", manifest.must_match},
            {"classes", manifest.classes},
            {"model", manifest.model},
            {"exported", manifest.exported},
            {"files", Json::object()},
            {"tensors", Json::object()}};
  for (const auto& [name, digest] : manifest.files)
    json["files"][name] = {{"bytes", digest.bytes}, {"crc32", fmt::format("{:08x}", digest.crc32)}};
  for (const auto& [name, tensor] : manifest.tensors)
    json["tensors"][name] = {{"file", tensor.file},
                             {"dtype", safetensors_type(tensor.info.type)},
                             {"shape", tensor.info.shape}};
  return json.dump(1) + "\n";
}

Manifest manifest_from_json(const std::string& text) {
  try {
    const Json json = Json::parse(text);
    ensure(json.at("format") == kFormat, "it is not one of mpi4dl");
    const auto& version = json.at("version");
    ensure(version.is_number_integer() && version >= kOldestVersion && version <= kVersion,
           "it has version {}, and this program reads versions {} to {}", version.dump(),
           kOldestVersion, kVersion);
    Manifest manifest{.step = json.at("step"),
                      .data = data_from(json.at("data")),
                      .must_match = json.at("must_match").get<Manifest::Settings>(),
                      .classes = json.value("classes", std::vector<std::string>()),
                      .model = json.value("model", std::string()),
                      .exported = json.value("exported", ExportedNames()),
                      .files = {},
                      .tensors = {}};
    for (const auto& [name, file] : json.at("files").items())
      manifest.files[name] = {
          file.at("bytes"),
          static_cast<uint32_t>(std::stoul(file.at("crc32").get<std::string>(), nullptr, 16))};
    const Json& tensors = json.at("tensors");
    for (const auto& [key, tensor] : tensors.items())
      manifest.tensors[version == 1 ? new_name(key, tensors) : key] = {
          tensor.at("file"), key, {type_from_safetensors(tensor.at("dtype")), tensor.at("shape")}};
    return manifest;
  } catch (const std::exception& error) {
    throw Error(fmt::format("its manifest cannot be used: {}", error.what()));
  }
}

}  // namespace mpi4dl
