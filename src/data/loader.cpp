#include "data/loader.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <filesystem>

#include "base/error.hpp"
#include "base/random.hpp"
#include "comm/collectives.hpp"
#include "data/sampler.hpp"

namespace mpi4dl {
namespace {

/// Hashes what must be the same on every node: files, their classes and their order, but not
/// folders.
uint64_t hash_of(const Dataset& data, const std::vector<int64_t>& order) {
  uint64_t hash = 0;
  for (const int64_t sample : order) {
    hash = combine_keys(hash, static_cast<uint64_t>(sample));
    hash = combine_keys(hash, static_cast<uint64_t>(data.label(sample)));
    hash = combine_keys(hash, key_of(std::filesystem::path(data.name(sample)).filename().native()));
  }
  return hash;
}

}  // namespace

Loader::Loader(const Dataset& data, std::vector<Reading> readings, LoaderOptions options,
               const Communicator& world, std::vector<int64_t> left_out)
    : data_(data),
      readings_(std::move(readings)),
      options_(std::move(options)),
      augmentation_(options_.augmentation, options_.image, options_.seed),
      world_(world),
      left_out_(std::move(left_out)),
      workers_(readings_.empty() ? 0 : options_.workers) {}

void Loader::load(const Position& step) {
  const bool new_epoch = step.epoch != step_.epoch;
  step_ = step;
  if (new_epoch) {
    orders_.erase(orders_.begin(), orders_.lower_bound(step.epoch));
    check_order();
  }
  ready_.clear();
  do {
    samples_ = samples_of(step);
    if ((ahead_.empty() ? next_step_ : ahead_.front().step) != step) forget_ahead();
    read_ahead();
  } while (options_.skip_bad_images && leave_out_bad_ones());
}

at::Tensor Loader::read(const Reading& reading) {
  const auto found = std::ranges::find(ready_, reading, &Ready::reading);
  if (found == ready_.end()) return fetch(reading);
  at::Tensor pixels = std::move(found->pixels);
  ready_.erase(found);
  return pixels;
}

/// Returns what is left of the epoch's shuffle.
const std::vector<int64_t>& Loader::order(int64_t epoch) {
  const auto [place, fresh] = orders_.try_emplace(epoch);
  if (!fresh) return place->second;
  std::vector<int64_t> all = shuffled(data_.size(), options_.seed, epoch);
  std::erase_if(all, [&](int64_t sample) { return std::ranges::binary_search(left_out_, sample); });
  ensure(static_cast<int64_t>(all.size()) >= options_.effective_batch,
         "only {} of {} images can be read, less than an effective batch of {}", all.size(),
         data_.size(), options_.effective_batch);
  return place->second = std::move(all);
}

std::vector<int64_t> Loader::samples_of(const Position& step) {
  const std::vector<int64_t>& all = order(step.epoch);
  std::vector<int64_t> samples(options_.effective_batch);
  const int64_t first = (step.step - 1) * options_.effective_batch;
  for (int64_t place = 0; place < options_.effective_batch; ++place)
    samples[place] = all[(first + place) % all.size()];
  return samples;
}

void Loader::check_order() {
  const std::vector<uint64_t> hashes = all_gather(hash_of(data_, order(step_.epoch)), world_);
  for (size_t rank = 0; rank < hashes.size(); ++rank)
    ensure(hashes[rank] == hashes[0],
           "ranks 0 and {} do not have the same images in the same order in epoch {}; do they see "
           "the same files?",
           rank, step_.epoch);
}

/// Reads the whole step before anything is computed. Returns true where some rank found a bad
/// image: then the step has other samples.
bool Loader::leave_out_bad_ones() {
  ready_.clear();
  std::map<int64_t, std::string> reasons;  // by place
  for (const Reading& reading : readings_) {
    try {
      ready_.push_back({reading, fetch(reading)});
    } catch (const Error& error) {
      reasons.emplace(reading.place, error.what());
    }
  }
  // The first rank that noticed speaks: the highest of these numbers.
  at::Tensor noticed = at::zeros({options_.effective_batch}, at::kLong);
  for (const auto& [place, reason] : reasons) noticed[place] = world_.size() - world_.rank();
  all_reduce(noticed, world_, {.reduction = Reduction::max});
  if (noticed.count_nonzero().item<int64_t>() == 0) return false;
  for (int64_t place = 0; place < options_.effective_batch; ++place) {
    const int64_t speaker = world_.size() - noticed[place].item<int64_t>();
    if (speaker < world_.size()) left_out_.push_back(samples_[place]);
    if (speaker == world_.rank()) options_.warn("left out: " + reasons.at(place));
  }
  std::ranges::sort(left_out_);
  orders_.clear();
  forget_ahead();
  return true;
}

at::Tensor Loader::read_now(int64_t epoch, int64_t sample, const Box& box) const {
  return options_.normalisation.apply(augmentation_.read(data_, epoch, sample, box), box[1]);
}

at::Tensor Loader::fetch(const Reading& reading) {
  const auto found = std::ranges::find_if(
      ahead_, [&](const Ahead& box) { return box.step == step_ && box.reading == reading; });
  if (found == ahead_.end()) return read_now(step_.epoch, samples_.at(reading.place), reading.box);
  std::future<at::Tensor> pixels = std::move(found->pixels);
  ahead_.erase(found);
  read_ahead();
  return pixels.get();
}

/// Keeps the workers busy with what comes next.
void Loader::read_ahead() {
  const size_t most = LoaderOptions::kBoxesPerWorker * (readings_.empty() ? 0 : options_.workers);
  while (ahead_.size() < most && next_step_.epoch <= options_.epochs) {
    const Reading& reading = readings_[next_reading_];
    const int64_t sample = samples_of(next_step_).at(reading.place);
    ahead_.push_back({next_step_, reading,
                      workers_.start([this, epoch = next_step_.epoch, sample, box = reading.box] {
                        return read_now(epoch, sample, box);
                      })});
    if (++next_reading_ < readings_.size()) continue;
    next_reading_ = 0;
    const bool last = next_step_.step == steps_of_epoch();
    next_step_ =
        last ? Position{next_step_.epoch + 1, 1} : Position{next_step_.epoch, next_step_.step + 1};
  }
}

/// Starts anew at the current step.
void Loader::forget_ahead() {
  workers_.drop_waiting();
  ahead_.clear();
  next_step_ = step_;
  next_reading_ = 0;
}

}  // namespace mpi4dl
