#include "train/manifest.hpp"

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "storage/safetensors.hpp"

namespace mpi4dl {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "mpi4dl checkpoint";
constexpr int kVersion = 1;

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
    ensure(json.at("version") == kVersion, "it has version {}, and this program reads version {}",
           json.at("version").dump(), kVersion);
    Manifest manifest{.step = json.at("step"),
                      .data = data_from(json.at("data")),
                      .must_match = json.at("must_match").get<Manifest::Settings>(),
                      .classes = json.value("classes", std::vector<std::string>()),
                      .files = {},
                      .tensors = {}};
    for (const auto& [name, file] : json.at("files").items())
      manifest.files[name] = {
          file.at("bytes"),
          static_cast<uint32_t>(std::stoul(file.at("crc32").get<std::string>(), nullptr, 16))};
    for (const auto& [name, tensor] : json.at("tensors").items())
      manifest.tensors[name] = {tensor.at("file"),
                                {type_from_safetensors(tensor.at("dtype")), tensor.at("shape")}};
    return manifest;
  } catch (const std::exception& error) {
    throw Error(fmt::format("its manifest cannot be used: {}", error.what()));
  }
}

}  // namespace mpi4dl
