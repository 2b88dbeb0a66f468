#include "memory/libtorch_build.hpp"

#include <ATen/Context.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <torch/version.h>

#include <filesystem>

namespace mpi4dl {
namespace {

/// Asks the loader for the folder of libc10, which this object is part of.
std::filesystem::path folder_of_libtorch() {
  Dl_info library{};
  if (dladdr(c10::GetDefaultCPUAllocator(), &library) == 0) return {};
  return std::filesystem::weakly_canonical(library.dli_fname).parent_path();
}

std::string owner_of(const std::filesystem::path& folder) {
  if (std::filesystem::exists(folder.parent_path() / "version.py")) return "PyTorch's wheel, ";
  return folder.string().starts_with("/usr/lib") ? "the system's, " : "";
}

}  // namespace

std::string describe_libtorch() {
  const std::filesystem::path folder = folder_of_libtorch();
  return fmt::format("{}, {}in {}", TORCH_VERSION, owner_of(folder), folder.string());
}

std::string describe_cuda() {
  const at::CUDAHooksInterface& cuda = at::detail::getCUDAHooks();
  if (!cuda.hasCUDART()) return "not in this libtorch";
  const long version = cuda.versionCUDART();  // 13020 is 13.2
  std::string text = fmt::format("{}.{}", version / 1000, version % 1000 / 10);
  if (cuda.compiledWithCuDNN()) text += fmt::format(", cuDNN {}", cuda.versionCuDNN());
  const int devices = c10::impl::VirtualGuardImpl(c10::DeviceType::CUDA).deviceCount();
  return text + fmt::format("; {} device{} here", devices == 0 ? "no" : std::to_string(devices),
                            devices == 1 ? "" : "s");
}

}  // namespace mpi4dl
