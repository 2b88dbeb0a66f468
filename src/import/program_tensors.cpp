#include "import/program_tensors.hpp"

#include <algorithm>
#include <set>
#include <tuple>

#include "base/error.hpp"

namespace mpi4dl {
namespace {

auto place_of(const StoredTensor& tensor) {
  return std::tie(tensor.offset, tensor.info.shape, tensor.strides);
}

}  // namespace

void ProgramTensors::add(const ZipArchive& archive,
                         const std::map<std::string, StoredTensor>& stored) {
  const int number = static_cast<int>(archives_.size());
  archives_.push_back(archive);
  for (const auto& [name, tensor] : stored) {
    check_place(name, tensor, archive);
    ensure(places_.emplace(name, Place{tensor, number}).second, "it has two tensors {}", name);
    infos_[name] = tensor.info;
  }
  check_sharing();
}

void ProgramTensors::check_sharing() const {
  std::map<std::pair<int, std::string>, std::vector<std::pair<int64_t, std::string>>> storages;
  for (const auto& [name, place] : places_)
    storages[{place.archive, place.tensor.storage}].emplace_back(place.tensor.offset, name);
  for (auto& [storage, tensors] : storages) {
    std::ranges::sort(tensors);
    for (size_t i = 1; i < tensors.size(); ++i) {
      const StoredTensor& before = stored(tensors[i - 1].second);
      const StoredTensor& here = stored(tensors[i].second);
      validate(place_of(before) == place_of(here) || end_of(before) <= here.offset,
               "{} and {} have some elements in common, which cannot be trained",
               tensors[i - 1].second, tensors[i].second);
    }
  }
}

at::Tensor ProgramTensors::read(const std::string& name) const {
  const auto& [tensor, number] = places_.at(name);
  return read_tensor(tensor, archives_[number]);
}

std::map<std::string, std::vector<std::string>> ProgramTensors::aliases() const {
  std::map<std::tuple<int, std::string, int64_t, std::vector<int64_t>>, std::string> first;
  std::map<std::string, std::vector<std::string>> names;
  for (const auto& [name, place] : places_) {
    const StoredTensor& tensor = place.tensor;
    const std::string& known =
        first
            .emplace(std::tuple(place.archive, tensor.storage, tensor.offset, tensor.info.shape),
                     name)
            .first->second;
    names[known].push_back(name);
  }
  return names;
}

}  // namespace mpi4dl
