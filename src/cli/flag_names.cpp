#include "cli/flag_names.hpp"

#include <fmt/ranges.h>

#include <utility>
#include <vector>

#include "backend/backend.hpp"
#include "backend/device_errors.hpp"
#include "base/error.hpp"
#include "comm/agreement.hpp"
#include "comm/session.hpp"

namespace mpi4dl {
namespace {

// What the library says, and the flag that sets it.
constexpr std::pair<const char*, const char*> kFlags[] = {
    {"unknown parallelism", "--parallelism"},
    {" parallelism ", "--parallelism"},
    {"is not a stage;", "--stages"},
    {"list of stages", "--stages"},
    {"split size", "--split-size"},
    {"spatial size", "--spatial-size"},
    {"spatial parts", "--num-spatial-parts"},
    {"slice method", "--slice-method"},
    {"local DP", "--local-DP"},
    {"GEMS is about", "--gems"},
    {"micro-batches; use at most", "--parts"},
    {"balance of", "--balance"},
    {"fused layers", "--fused-layers"},
    {"global pool head", "--global-pool-head"},
    {"the number of classes is", "--num-classes"},
    {"image size", "--image-size"},
    {"crop-pad or resize", "--fit"},
    {"micrometres a pixel", "--mpp"},
    {"no normalisation", "--normalise"},
    {"the normalisation", "--normalise"},
    {"a normalisation of", "--normalise"},
    {"no batch norm to freeze", "--freeze-batch-norm"},
    {"could have another number of classes", "--num-classes"},
    {"with another graph", "--model"},
    {"this file as its weights", "--weights"},
    {"choose a level", "--level"},
    {"augmentation", "--augment"},
    {"larger canvas", "--size"},
    {"less noise", "--noise"},
    {"fewer distractors", "--distractors"},
    {"of the most frequent glyph", "--most"},
    {"of the others, or none", "--others"},
    {"resume from there", "--resume auto"},
    {"choose another folder", "--checkpoint-dir"},
    {"start anew from its weights", "--checkpoint"},
    {"raise the time-out", "--timeout"},
    {"the run directory", "--run-dir"},
    {"resume that run", "--resume"},
    {"cannot log steps", "--json-log"},
    {"not an empty folder", "--out"},
};

}  // namespace

std::string with_flags(const std::string& sentence) {
  std::vector<std::string> flags;
  for (const auto& [words, flag] : kFlags)
    if (sentence.find(words) != std::string::npos && sentence.find(flag) == std::string::npos &&
        (flags.empty() || flags.back() != flag))
      flags.emplace_back(flag);
  return flags.empty() ? sentence : fmt::format("{} ({})", sentence, fmt::join(flags, ", "));
}

void fail_with_flags(Session& session, const std::exception& error) {
  if (is_out_of_memory(error))
    session.fail(Error(fmt::format(
        "{}; use smaller images or a smaller batch (--image-size, --batch-size), or more ranks, as "
        "tiles or stages (--num-spatial-parts, --split-size)",
        no_memory_left(error, session.world().context().backend->device()))));
  if (dynamic_cast<const UsageError*>(&error) != nullptr)
    session.fail(UsageError(with_flags(error.what())));
  if (dynamic_cast<const CommonError*>(&error) != nullptr)
    session.fail(CommonError(with_flags(error.what())));
  if (dynamic_cast<const Error*>(&error) != nullptr) session.fail(Error(with_flags(error.what())));
  session.fail(error);
}

}  // namespace mpi4dl
