// mpi4dl-torchscript FILE HxW SECONDS BYTES PARENT: writes what the TorchScript module in a file
// computes from images of this size to its standard output, in the form of an exported program.
// mpi4dl starts it for each such file: libtorch executes code of the file while it loads it, and
// this process can do no harm and ends when it takes too much.
//
// Exit code 0: the output is a program; 1 and 2: it is a sentence that says why not; 3: there was
// not enough memory.
#include <ATen/Parallel.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/sandbox.hpp"
#include "import/torchscript/forward_walk.hpp"
#include "import/torchscript/program_json.hpp"

namespace mpi4dl {
namespace {

Extents parse_size(std::string_view text) {
  Extents size{0};
  for (const char digit : text) {
    if (digit == 'x')
      size.push_back(0);
    else
      size.back() = 10 * size.back() + (digit - '0');
  }
  return size;
}

/// Lets libtorch look at the machine, as it does once, while files can be opened.
void warm_up() {
  at::set_num_threads(1);
  at::add(at::ones({1}), 1);
}

/// A part that is in evaluation while others are in training is meant so.
void train_unless_mixed(torch::jit::Module& module) {
  for (const torch::jit::Module& part : module.modules())
    if (part.hasattr("training") && part.is_training()) return;
  module.train();
}

std::string read(const std::string& path, const Extents& image, const SandboxLimits& limits) {
  const ModuleFile file(path);
  warm_up();
  enter_sandbox(
      {.cpu_seconds = limits.cpu_seconds, .memory_bytes = limits.memory_bytes + 2 * file.bytes()});
  const at::NoGradGuard guard;
  torch::jit::Module module = file.load();
  validate(module.hasattr("training"),
           "torch.jit.freeze has made constants of its parameters, which have no names any more; "
           "save the module before it is frozen");
  train_unless_mixed(module);
  return describe(walk_forward(file, module, image));
}

int finish(int code, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(STDOUT_FILENO, text.data(), text.size());
    if (written <= 0) return 1;
    text.remove_prefix(static_cast<size_t>(written));
  }
  return code;
}

int run(const std::string& path, const Extents& image, const SandboxLimits& limits) {
  try {
    return finish(0, read(path, image, limits));
  } catch (const UsageError& error) {
    return finish(2, error.what());
  } catch (const std::bad_alloc&) {
    return 3;
  } catch (const std::exception& error) {
    return finish(1, error.what());
  }
}

}  // namespace
}  // namespace mpi4dl

/// Ends without destructors, which would run in what the file has left behind.
int main(int count, char** words) {
  using namespace mpi4dl;
  if (count != 6) return finish(2, "mpi4dl starts this program itself");
  end_with_parent(static_cast<pid_t>(std::atoi(words[5])));
  close_inherited_files();
  const SandboxLimits limits{.cpu_seconds = std::atoll(words[3]),
                             .memory_bytes = std::atoll(words[4])};
  std::_Exit(run(words[1], parse_size(words[2]), limits));
}
