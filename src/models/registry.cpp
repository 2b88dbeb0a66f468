#include "models/registry.hpp"

#include <fmt/ranges.h>

#include <map>

#include "base/error.hpp"
#include "base/nearest_name.hpp"
#include "models/amoebanet.hpp"
#include "models/resnet.hpp"

namespace mpi4dl {
namespace {

std::map<std::string, ModelBuilder>& builders() {
  static std::map<std::string, ModelBuilder> models{{"amoebanet", amoebanet}, {"resnet", resnet}};
  return models;
}

}  // namespace

Graph build_model(const ModelOptions& options) {
  const auto found = builders().find(options.name);
  validate(found != builders().end(), "unknown model '{}'{}; there are {}", options.name,
           suggestion(options.name, model_names()), fmt::join(model_names(), ", "));
  return found->second(options);
}

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const auto& [name, builder] : builders()) names.push_back(name);
  return names;
}

void register_model(const std::string& name, ModelBuilder builder) {
  const bool is_new = builders().emplace(name, std::move(builder)).second;
  validate(is_new, "there is a model named '{}' already", name);
}

}  // namespace mpi4dl
