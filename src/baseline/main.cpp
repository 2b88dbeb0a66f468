// mpi4dl-baseline: the baseline of `mpi4dl bench train`. It trains a model with libtorch alone,
// in one process: nothing of MPI, of our operators or of our memory is in this program. Commands
// come on standard input, a line each, and each is answered by one figure:
//
//     step      one training step       seconds
//     gemm      a large matrix product  GFLOP/s
//     memory    the most so far         bytes of this process, in host memory
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <map>
#include <optional>

#include "baseline/gemm.hpp"
#include "baseline/training.hpp"

namespace mpi4dl::baseline {
namespace {

const std::map<std::string, c10::ScalarType> kTypes{{"float64", c10::ScalarType::Double},
                                                    {"float32", c10::ScalarType::Float},
                                                    {"bfloat16", c10::ScalarType::BFloat16}};

struct Flags {
  TrainingOptions training;
  c10::ScalarType gemm_type = c10::ScalarType::Float;
  int threads = 1;
  std::string device = "cpu";
  bool tf32 = false;
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
  app.add_option("--height", options.height, "Height of an image");
  app.add_option("--width", options.width, "Width of an image");
  app.add_option("--batch-size", options.batch, "Images of a step");
  app.add_option("--dtype", options.type, "Data type of tensors")
      ->transform(CLI::Transformer(kTypes));
  app.add_option("--gemm-dtype", flags.gemm_type, "Type of the matrix product")
      ->transform(CLI::Transformer(kTypes));
  app.add_option("--threads", flags.threads, "Threads to compute with");
  app.add_option("--device", flags.device, "Device to compute on");
  app.add_flag("--tf32", flags.tf32, "Multiply float32 with the 10 bits of TensorFloat32");
}

/// Takes no other arithmetic than the measured side does: cuDNN would take TensorFloat32 unasked.
void set_arithmetic(bool tf32) {
  at::globalContext().setAllowTF32CuDNN(tf32);
  at::globalContext().setAllowTF32CuBLAS(tf32);
}

double most_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return 1024.0 * static_cast<double>(usage.ru_maxrss);
}

void answer(const Flags& flags) {
  std::optional<Training> training;  // made when it is first needed
  for (std::string command; std::getline(std::cin, command);) {
    double figure = 0;
    if (command == "step") {
      if (!training) training.emplace(flags.training);
      figure = training->step();
    } else if (command == "gemm") {
      figure = measure_gemm(flags.gemm_type, flags.training.device);
    } else if (command == "memory") {
      figure = most_memory();
    } else {
      TORCH_CHECK(false, "unknown command ", command);
    }
    std::cout << figure << std::endl;  // NOLINT: the other side waits for it
  }
}

}  // namespace
}  // namespace mpi4dl::baseline

int main(int argc, char** argv) {
  CLI::App app{"Trains with libtorch alone in one process: the baseline of mpi4dl bench train."};
  mpi4dl::baseline::Flags flags;
  mpi4dl::baseline::add_flags(app, flags);
  CLI11_PARSE(app, argc, argv);
  try {
    at::set_num_threads(flags.threads);
    flags.training.device = at::Device(flags.device);
    mpi4dl::baseline::set_arithmetic(flags.tf32);
    std::cout.precision(9);
    mpi4dl::baseline::answer(flags);
  } catch (const c10::Error& error) {
    std::cerr << "mpi4dl-baseline: " << error.what_without_backtrace() << "\n";
    return 1;
  }
  return 0;
}
