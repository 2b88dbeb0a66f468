#include "data/survey.hpp"

#include <fmt/format.h>

#include "base/on_threads.hpp"
#include "comm/agreement.hpp"
#include "comm/collectives.hpp"

namespace mpi4dl {
namespace {

/// Adds up the problems of all ranks, whose shares follow each other.
Survey::Problems add_up(const Survey::Problems& mine, const Communicator& world) {
  Survey::Problems all;
  for (const int64_t images : all_gather(mine.images, world)) all.images += images;
  if (all.images == 0) return all;
  for (const std::string& first : gather_texts(world, mine.first))
    if (all.first.empty()) all.first = first;
  return all;
}

/// Returns "1,203" for 1203.
std::string grouped(int64_t number) {
  std::string digits = std::to_string(number);
  for (auto place = std::ssize(digits) - 3; place > 0; place -= 3)
    digits.insert(digits.begin() + place, ',');
  return digits;
}

void add(const Survey::Problems& more, Survey::Problems& sum) {
  sum.images += more.images;
  if (sum.first.empty()) sum.first = more.first;
}

std::string describe(const Survey::Problems& problems, const char* what) {
  if (problems.images == 0) return "";
  return fmt::format(", {} {} ({}{})", grouped(problems.images), what,
                     problems.images == 1 ? "" : "first: ", problems.first);
}

}  // namespace

Survey survey(const Dataset& data, bool with_names, const Communicator& world) {
  const Interval share = part(data.size(), world.rank(), world.size());
  std::vector<Problem> problems(share.length());
  on_threads(problems.size(),
             [&](size_t i) { problems[i] = data.look_at(share.begin + static_cast<int64_t>(i)); });
  Survey mine{.images = data.size()};
  for (size_t i = 0; i < problems.size(); ++i) {
    const Problem& problem = problems[i];
    if (problem.kind == Problem::Kind::none) continue;
    add({1, problem.reason},
        problem.kind == Problem::Kind::unreadable ? mine.unreadable : mine.unsuitable);
    if (with_names) mine.bad.emplace(share.begin + static_cast<int64_t>(i), problem.reason);
  }
  return {.images = mine.images,
          .unreadable = add_up(mine.unreadable, world),
          .unsuitable = add_up(mine.unsuitable, world),
          .bad = gather_bad_samples(mine.bad, world)};
}

std::string describe(const std::vector<Survey>& parts) {
  Survey all;
  for (const Survey& part : parts) {
    all.images += part.images;
    add(part.unreadable, all.unreadable);
    add(part.unsuitable, all.unsuitable);
  }
  return fmt::format("{} image{}: {} readable{}{}", grouped(all.images), all.images == 1 ? "" : "s",
                     grouped(all.good()), describe(all.unreadable, "cannot be opened"),
                     describe(all.unsuitable, "cannot be shown as asked for"));
}

}  // namespace mpi4dl
