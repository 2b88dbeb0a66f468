#include "cli/bad_images.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>

#include "cli/flag_names.hpp"
#include "comm/agreement.hpp"
#include "comm/session.hpp"
#include "data/survey.hpp"

namespace mpi4dl {
namespace {

void warn_of(const BadParts& bad) {
  constexpr int64_t kReadable = 20;
  int64_t count = 0;
  for (const BadSamples& part : {bad.training, bad.validation})
    for (const auto& [sample, reason] : part)
      if (++count <= kReadable) warn("left out: " + with_flags(reason));
  if (count > kReadable) warn(fmt::format("left out: {} more", count - kReadable));
}

}  // namespace

void BadImageFlag::add_to(CLI::App& command) {
  command
      .add_option("--on-bad-image", value,
                  "An image that cannot be read: fail, or skip it for the rest of the run")
      ->check(CLI::IsMember({"fail", "skip"}));
}

BadParts check_images(const DataParts& parts, bool skip, Session& session) {
  session.doing("looking at the headers of images");
  Survey training = survey(*parts.training, skip, session.world());
  Survey validation =
      parts.validation ? survey(*parts.validation, skip, session.world()) : Survey();
  const BadParts bad{std::move(training.bad), std::move(validation.bad)};
  if (training.all_good() && validation.all_good()) return bad;
  const std::string counts = describe({training, validation});
  if (!skip) throw CommonError(counts + "; mend or remove them, or use --on-bad-image skip");
  if (session.first()) {
    warn_of(bad);
    fmt::print("{}\n", counts);
  }
  return bad;
}

void warn(const std::string& sentence) {
  fmt::print(stderr, "mpi4dl: {}\n", sentence);
}

}  // namespace mpi4dl
