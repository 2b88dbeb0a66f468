#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace mpi4dl {

class Session;

/// What a parsed command line asks for.
struct Command {
  /// Throws UsageError where flags contradict each other or do not fit the number of ranks. Runs
  /// before MPI starts, so it looks at nothing but the command line.
  std::function<void(int ranks)> check = [](int /*ranks*/) {};
  /// Does the work and returns the exit code.
  std::function<int(Session&)> run;
};

/// `mpi4dl bench halo`: adds the command to `bench` and sets `chosen` when it is used.
void add_bench_halo(CLI::App& bench, Command& chosen);

/// `mpi4dl bench train`.
void add_bench_train(CLI::App& bench, Command& chosen);

/// `mpi4dl data cut-patches`.
void add_cut_patches(CLI::App& data, Command& chosen);

/// `mpi4dl data make-glyphs`.
void add_make_glyphs(CLI::App& data, Command& chosen);

/// `mpi4dl data make-megapixel-mnist`.
void add_make_megapixel_mnist(CLI::App& data, Command& chosen);

/// `mpi4dl export`.
void add_export(CLI::App& app, Command& chosen);

/// `mpi4dl evaluate`.
void add_evaluate(CLI::App& app, Command& chosen);

/// `mpi4dl data inspect`: adds the command to `data`.
void add_data_inspect(CLI::App& data, Command& chosen);

/// `mpi4dl plan`.
void add_plan(CLI::App& app, Command& chosen);

/// `mpi4dl predict`.
void add_predict(CLI::App& app, Command& chosen);

/// `mpi4dl train`.
void add_train(CLI::App& app, Command& chosen);

/// `mpi4dl verify`.
void add_verify(CLI::App& app, Command& chosen);

}  // namespace mpi4dl
