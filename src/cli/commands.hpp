#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace mpi4dl {

class Session;

/// Command is what a parsed command line asks for.
struct Command {
  /// Throws UsageError where flags contradict each other or do not fit the number of ranks. Runs
  /// before MPI starts, so it looks at nothing but the command line.
  std::function<void(int ranks)> check = [](int /*ranks*/) {};
  /// Does the work and returns the exit code.
  std::function<int(Session&)> run;
};

// Each of these adds the command of its name to the one above it, and sets `chosen` when it is
// used.
void add_train(CLI::App& app, Command& chosen);
void add_evaluate(CLI::App& app, Command& chosen);
void add_predict(CLI::App& app, Command& chosen);
void add_plan(CLI::App& app, Command& chosen);
void add_export(CLI::App& app, Command& chosen);
void add_import(CLI::App& app, Command& chosen);
void add_verify(CLI::App& app, Command& chosen);
void add_make_glyphs(CLI::App& data, Command& chosen);
void add_make_megapixel_mnist(CLI::App& data, Command& chosen);
void add_cut_patches(CLI::App& data, Command& chosen);
void add_data_inspect(CLI::App& data, Command& chosen);
void add_bench_halo(CLI::App& bench, Command& chosen);
void add_bench_train(CLI::App& bench, Command& chosen);

}  // namespace mpi4dl
