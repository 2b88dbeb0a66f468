#include "train/checkpoint.hpp"

#include <ATen/ATen.h>

#include <utility>

#include "base/error.hpp"

namespace mpi4dl {
namespace {

std::string describe(const Digest& digest) {
  return fmt::format("{} bytes, crc32 {:08x}", digest.bytes, digest.crc32);
}

Manifest read_manifest(const std::string& folder) {
  const std::string text = read_text(folder + "/" + kManifestFile);
  const std::string sum = read_text(folder + "/" + kManifestSum);
  const std::string found = describe(digest_of_text(text)) + "\n";
  ensure(sum == found, "its manifest is not what was written");
  return manifest_from_json(text);
}

}  // namespace

Checkpoint::Checkpoint(std::string folder)
    : folder_(std::move(folder)), manifest_(read_manifest(folder_)) {
  for (const auto& [name, tensor] : manifest_.tensors) tensors_[name] = tensor.info;
}

void Checkpoint::check_files(int share, int shares) const {
  int number = 0;
  for (const auto& [name, expected] : manifest_.files) {
    if (number++ % shares != share) continue;
    const Digest found = digest_of(folder_ + "/" + name);
    ensure(found == expected, "{} has {} instead of {}", name, describe(found), describe(expected));
  }
}

std::optional<std::string> Checkpoint::graph() const {
  const auto found = manifest_.files.find(kGraphFile);
  if (found == manifest_.files.end()) return std::nullopt;
  std::string text = read_text(folder_ + "/" + kGraphFile);
  ensure(digest_of_text(text) == found->second, "{}/{} is not what was written", folder_,
         kGraphFile);
  return text;
}

at::Tensor Checkpoint::read(const std::string& name) const {
  const Manifest::Tensor& tensor = manifest_.tensors.at(name);
  auto& open = open_[tensor.file];
  if (!open) open = std::make_unique<SafetensorsFile>(folder_ + "/" + tensor.file);
  return open->read(tensor.key);
}

void write_manifest(const std::string& folder, const Manifest& manifest) {
  const Digest digest = write_durably(folder + "/" + kManifestFile, to_json(manifest));
  write_durably(folder + "/" + kManifestSum, describe(digest) + "\n");
}

}  // namespace mpi4dl
