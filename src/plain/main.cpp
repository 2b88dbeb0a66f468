// mpi4dl-plain: the other side of `mpi4dl bench train`. It trains a model with libtorch alone, in
// one process: nothing of MPI, of our operators or of our memory is in this program. Commands come
// on standard input, a line each, and each is answered by a number:
//
//     step      one training step       seconds
//     gemm      a large matrix product  GFLOP/s
//     memory    the most so far         bytes of this process
#include <ATen/Parallel.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <map>
#include <optional>

#include "plain/gemm.hpp"
#include "plain/training.hpp"

namespace mpi4dl::plain {
namespace {

const std::map<std::string, c10::ScalarType> kTypes{{"float64", c10::ScalarType::Double},
                                                    {"float32", c10::ScalarType::Float},
                                                    {"bfloat16", c10::ScalarType::BFloat16}};

struct Flags {
  TrainingOptions training;
  c10::ScalarType gemm_type = c10::ScalarType::Float;
  int threads = 1;
};

void add_flags(CLI::App& app, Flags& flags) {
  app.option_defaults()->always_capture_default();
  TrainingOptions& options = flags.training;
  app.add_option("--model", options.model, "resnet or amoebanet")
      ->check(CLI::IsMember({"resnet", "amoebanet"}));
  app.add_option("--resnet-version", options.resnet_version, "1 (depth 6n+2) or 2 (9n+2)");
  app.add_option("--depth", options.depth, "Layers of a ResNet");
  app.add_flag("--global-pool-head", options.global_pool_head, "ResNet: pool the whole image");
  app.add_option("--num-layers", options.num_layers, "Normal cells of an AmoebaNet");
  app.add_option("--num-filters", options.num_filters, "Filters of an AmoebaNet");
  app.add_option("--num-classes", options.classes, "Classes");
  app.add_option("--height", options.height, "Of an image");
  app.add_option("--width", options.width, "Of an image");
  app.add_option("--batch-size", options.batch, "Images of a step");
  app.add_option("--dtype", options.type, "Type of numbers")->transform(CLI::Transformer(kTypes));
  app.add_option("--gemm-dtype", flags.gemm_type, "Type of the matrix product")
      ->transform(CLI::Transformer(kTypes));
  app.add_option("--threads", flags.threads, "Threads to compute with");
}

double most_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return 1024.0 * static_cast<double>(usage.ru_maxrss);
}

void answer(const Flags& flags) {
  std::optional<Training> training;  // made when it is first needed
  for (std::string command; std::getline(std::cin, command);) {
    double number = 0;
    if (command == "step") {
      if (!training) training.emplace(flags.training);
      number = training->step();
    } else if (command == "gemm") {
      number = measure_gemm(flags.gemm_type);
    } else if (command == "memory") {
      number = most_memory();
    } else {
      TORCH_CHECK(false, "unknown command ", command);
    }
    std::cout << number << std::endl;  // NOLINT: the other side waits for it
  }
}

}  // namespace
}  // namespace mpi4dl::plain

int main(int argc, char** argv) {
  CLI::App app{"Trains with plain libtorch in one process; the other side of mpi4dl bench train."};
  mpi4dl::plain::Flags flags;
  mpi4dl::plain::add_flags(app, flags);
  CLI11_PARSE(app, argc, argv);
  try {
    at::set_num_threads(flags.threads);
    std::cout.precision(9);
    mpi4dl::plain::answer(flags);
  } catch (const c10::Error& error) {
    std::cerr << "mpi4dl-plain: " << error.what_without_backtrace() << "\n";
    return 1;
  }
  return 0;
}
