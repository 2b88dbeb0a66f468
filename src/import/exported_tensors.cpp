#include "import/exported_tensors.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.hpp"
#include "storage/bounded_json.hpp"
#include "storage/state_dict_pickle.hpp"

namespace mpi4dl {
namespace {

using Json = nlohmann::json;

constexpr int64_t kMostConfigBytes = int64_t{64} << 20;
constexpr int kStrided = 7;

/// Lists the numbers of PyTorch's export schema.
constexpr std::array<std::pair<int, c10::ScalarType>, 10> kTypes{{{1, at::kByte},
                                                                  {2, at::kChar},
                                                                  {3, at::kShort},
                                                                  {4, at::kInt},
                                                                  {5, at::kLong},
                                                                  {6, at::kHalf},
                                                                  {7, at::kFloat},
                                                                  {8, at::kDouble},
                                                                  {12, at::kBool},
                                                                  {13, at::kBFloat16}}};

c10::ScalarType type_of(int64_t number) {
  for (const auto& [known, type] : kTypes)
    if (known == number) return type;
  throw Error(fmt::format("it has a tensor of type {}, which no network trains", number));
}

std::vector<int64_t> whole_sizes(const std::string& name, const Json& sizes) {
  std::vector<int64_t> found = read_sizes(sizes);
  for (const int64_t size : found) ensure(size >= 0, "the size of {} is no number", name);
  return found;
}

StoredTensor stored_tensor(const std::string& name, const Json& entry, const std::string& folder) {
  ensure(!entry.value("use_pickle", false), "{} is no plain tensor, but a pickled object", name);
  const Json& meta = entry.at("tensor_meta");
  ensure(whole_number(meta.at("layout")) == kStrided, "{} is a sparse tensor", name);
  StoredTensor tensor{
      {.info = {type_of(whole_number(meta.at("dtype"))), whole_sizes(name, meta.at("sizes"))},
       .storage = folder + entry.at("path_name").get<std::string>(),
       .offset = whole_number(meta.at("storage_offset").at("as_int")),
       .strides = whole_sizes(name, meta.at("strides"))}};
  tensor.trained = meta.at("requires_grad").get<bool>();
  return tensor;
}

/// Reads a description in JSON, beside which lie the storages.
std::map<std::string, StoredTensor> read_config(const ZipArchive& archive,
                                                const std::string& name) {
  const std::string folder = name.substr(0, name.rfind('/') + 1);
  return read_tensor_config(parse_bounded(archive.read(name, kMostConfigBytes), name), folder);
}

/// Reads an archive of torch.save within the archive, and leaves that one.
std::map<std::string, StoredTensor> read_saved(ZipArchive& archive, const std::string& name) {
  const ZipEntry* place = archive.find(name);
  archive = ZipArchive(archive.path(), place->begin, place->bytes);
  const std::string pickle = archive.name_ending("data.pkl");
  const std::string folder = pickle.substr(0, pickle.rfind('/') + 1) + "data/";
  std::map<std::string, StoredTensor> found;
  for (auto& [tensor, saved] : read_state_dict(archive.read(pickle, kMostConfigBytes))) {
    saved.storage = folder + saved.storage;
    found[tensor] = {std::move(saved)};
  }
  return found;
}

}  // namespace

int number_of_type(c10::ScalarType type) {
  for (const auto& [number, known] : kTypes)
    if (known == type) return number;
  return 0;
}

bool is_floating_type(int64_t number) {
  return std::ranges::any_of(kTypes, [&](const auto& known) {
    return known.first == number && c10::isFloatingType(known.second);
  });
}

std::vector<int64_t> read_sizes(const Json& sizes) {
  std::vector<int64_t> found;
  for (const Json& size : sizes)
    found.push_back(size.contains("as_int") ? whole_number(size.at("as_int")) : -1);
  return found;
}

std::map<std::string, StoredTensor> read_tensor_config(const Json& config,
                                                       const std::string& folder) {
  std::map<std::string, StoredTensor> found;
  for (const auto& [tensor, entry] : config.at("config").items())
    found[tensor] = stored_tensor(tensor, entry, folder);
  return found;
}

std::map<std::string, StoredTensor> read_stored_tensors(ZipArchive& archive, TensorGroup group) {
  const bool weights = group == TensorGroup::weights;
  const std::string folder = weights ? "data/weights/" : "data/constants/";
  const std::string config =
      folder + (weights ? "model_weights_config.json" : "model_constants_config.json");
  const std::string old = weights ? "serialized_state_dict.pt" : "serialized_constants.pt";
  if (const auto name = archive.find_ending(config)) return read_config(archive, *name);
  for (const std::string& saved : {folder + "model.pt", old})
    if (const auto name = archive.find_ending(saved)) return read_saved(archive, *name);
  throw Error(fmt::format("it has no entry '{}'", config));
}

}  // namespace mpi4dl
