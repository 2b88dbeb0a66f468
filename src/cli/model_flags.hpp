#pragma once

#include <string>
#include <vector>

#include "models/options.hpp"
#include "train/model.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace mpi4dl {

/// Holds the flags that choose a model and the size of its images, for every command that needs
/// one.
struct ModelFlags {
  ModelOptions options;
  std::string image_size = "32";
  int cells = 0;                    // 0: as many as a model's file suggests
  std::vector<std::string> reinit;  // patterns of parameters that start anew
  std::string checkpoint = {};      // that holds the graph; empty: the flags say which model it is

  void add_to(CLI::App& command);
  /// Adds --reinit, for commands that train from weights.
  void add_reinit_to(CLI::App& command);
  /// Returns whether --model was given.
  bool is_chosen() const;
  /// Returns what was asked for; throws UsageError where it is not sound.
  Model build() const;
  /// Returns it for images of this size; empty: that of its file, or the default.
  Model build(const Extents& size) const;

 private:
  Model open(const Extents& size) const;

  // Where these were not given, a model's file says.
  const CLI::Option *model_ = nullptr, *size_ = nullptr, *classes_ = nullptr;
};

/// Returns the size of a graph's images as --image-size says it: 512 for 512x512.
std::string image_size_text(const Graph& graph);

}  // namespace mpi4dl
