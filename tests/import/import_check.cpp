// import_check MODEL EXPECTED [TILES [OPTIMIZER]]: imports a file of PyTorch for the images in
// EXPECTED, a safetensors file with what PyTorch computes from them (tests/data/import/README.md),
// takes a training step on TILES (2x3), a rank for each, and prints the largest error as a line of
// JSON. With sgd or adamw it takes the steps that PyTorch has taken with these, in stages: 2x2,1.
// Exit code 1 if the error is above 1e-9, 2 if the file cannot be imported.
#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <vector>

#include "comm/session.hpp"
#include "layout/layout.hpp"
#include "support/imported_step.hpp"
#include "support/imported_training.hpp"

namespace mpi4dl {
namespace {

constexpr double kTolerance = 1e-9;

Comparison compare(const ImportedModel& model, const std::vector<std::string>& words,
                   const SafetensorsFile& expected, const Communicator& world) {
  if (words.size() < 4) {
    const Grid grid = words.size() > 2 ? make_grid(words[2], world.size()) : Grid{};
    return testing::compare_with_pytorch(model, grid, expected, world);
  }
  const Layout layout({.stages = words[2]}, world.size());
  return testing::compare_training(model, layout.stages(), words[3], expected, world);
}

int check(const std::vector<std::string>& words, const Session& session) {
  const SafetensorsFile expected(words.at(1));
  const ImportedModel model = import_model(words[0], {.image = testing::image_of(expected)});
  const Comparison found = compare(model, words, expected, session.world());
  const bool exact = found.max_relative_error <= kTolerance;  // not if it is no number
  if (session.first())
    fmt::print("{{\"error\": {:.3e}, \"of\": \"{}\"}}\n", found.max_relative_error, found.worst);
  return exact ? 0 : 1;
}

}  // namespace
}  // namespace mpi4dl

int main(int argc, char** argv) {
  mpi4dl::Session session;
  try {
    return mpi4dl::check({argv + 1, argv + argc}, session);
  } catch (const std::exception& error) {
    session.fail(error);
  }
}
