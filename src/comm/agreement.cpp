#include "comm/agreement.hpp"

#include <algorithm>
#include <exception>

#include "backend/backend.hpp"
#include "backend/device_errors.hpp"
#include "comm/collectives.hpp"

namespace mpi4dl {

std::vector<std::string> gather_texts(const Communicator& ranks, const std::string& mine) {
  const std::vector<size_t> lengths = all_gather(mine.size(), ranks);
  const size_t longest = *std::max_element(lengths.begin(), lengths.end());
  std::vector<std::string> texts(lengths.size());
  if (longest == 0) return texts;
  std::string padded = mine;
  padded.resize(longest);
  const std::vector<std::byte> all = all_gather_bytes(std::as_bytes(std::span(padded)), ranks);
  for (size_t rank = 0; rank < texts.size(); ++rank)
    texts[rank].assign(reinterpret_cast<const char*>(all.data()) + rank * longest, lengths[rank]);
  return texts;
}

void run_together(const Communicator& ranks, const std::function<void()>& work) {
  std::string failure;  // empty, or a character for its kind and a sentence
  try {
    work();
  } catch (const UsageError& error) {
    failure = std::string("u") + error.what();
  } catch (const std::exception& error) {
    failure = is_out_of_memory(error)
                  ? "m" + no_memory_left(error, ranks.context().backend->device())
                  : "e" + sentence_of(error);
  }
  for (const std::string& theirs : gather_texts(ranks, failure)) {
    if (theirs.empty()) continue;
    if (theirs[0] == 'u') throw UsageError(theirs.substr(1));
    if (theirs[0] == 'm') throw FullMemory(theirs.substr(1));
    throw CommonError(theirs.substr(1));
  }
}

}  // namespace mpi4dl
