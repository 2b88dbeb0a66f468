#include "cli/device_place.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdio>

#include "backend/backend.hpp"
#include "backend/device.hpp"
#include "comm/agreement.hpp"

namespace mpi4dl {
namespace {

std::string name_of_node() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "this node";
}

}  // namespace

void check_place(const Session& session) {
  const at::Device device = session.world().context().backend->device();
  run_together(session.world(), [&] {
    if (device.is_cpu()) return;
    const at::Device expected(
        device.type(),
        static_cast<at::DeviceIndex>(session.node_rank() % device_count(device.type())));
    validate(device == expected,
             "rank {} has taken {} by what its launcher says of its place on {}, but has place {} "
             "there, which is that of {}; give each rank a device of its own as --device",
             session.world().rank(), device.str(), name_of_node(), session.node_rank(),
             expected.str());
  });
}

void tell_of_shared_devices(const Session& session) {
  const int ranks = session.node_ranks(), devices = session.node_devices();
  if (session.node_rank() == 0 && devices > 0 && devices < ranks)
    fmt::print(stderr, "{} ranks of {} share {} device{}\n", ranks, name_of_node(), devices,
               devices == 1 ? "" : "s");
}

}  // namespace mpi4dl
