#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "data/augmentation.hpp"
#include "data/batch_source.hpp"
#include "data/dataset.hpp"
#include "data/normalisation.hpp"
#include "data/position.hpp"
#include "data/workers.hpp"

namespace mpi4dl {

struct LoaderOptions {
  static constexpr size_t kBoxesPerWorker = 2;  ///< read or waiting to be used

  int64_t effective_batch = 1;
  int64_t epochs = 1;  ///< nothing is read ahead of their end
  Shape image = {};
  uint64_t seed = 1;
  int workers = 0;  ///< threads that read ahead; 0: every box is read when it is needed
  bool skip_bad_images = false;  ///< leave them out, instead of failing
  AugmentationOptions augmentation = {};
  Normalisation normalisation = {};
  /// Hears of images that are left out, each on one rank only.
  std::function<void(const std::string& sentence)> warn = [](const std::string&) {};
};

/// Gives each step of a run its images: which ones, in which order, augmented, loaded ahead.
///
/// Seed, epoch and step alone decide which samples a step has, so it is the same for every layout,
/// and a run may start anywhere. An image that turns out to be bad is left out for the rest of the
/// run, and later ones of the epoch's order move up; where the order ends, it begins anew, so an
/// epoch always has the same number of steps.
class Loader : public BatchSource {
 public:
  /// Starts to load ahead. `readings`: what this rank reads in every step. `left_out`: samples
  /// known to be bad from an earlier run. Collective over the world.
  Loader(const Dataset& data, std::vector<Reading> readings, LoaderOptions options,
         const Communicator& world, std::vector<int64_t> left_out = {});

  /// Makes the images of a step the current ones; steps count from 1. Once an epoch all ranks make
  /// sure that they agree on the order. Collective over the world.
  void load(const Position& step);

  int64_t label(int64_t place) const override { return data_.label(samples_.at(place)); }
  at::Tensor read(const Reading& reading) override;

  int64_t steps_of_epoch() const { return data_.size() / options_.effective_batch; }
  /// Returns which sample stands at each place.
  const std::vector<int64_t>& samples() const { return samples_; }
  /// Returns the bad samples, sorted; the same on every rank. With the position, that is all it
  /// takes to resume.
  const std::vector<int64_t>& left_out() const { return left_out_; }

 private:
  /// Ahead is a box of a coming step.
  struct Ahead {
    Position step;
    Reading reading;
    std::future<at::Tensor> pixels;
  };
  struct Ready {
    Reading reading;
    at::Tensor pixels;
  };

  const std::vector<int64_t>& order(int64_t epoch);
  std::vector<int64_t> samples_of(const Position& step);
  void check_order();
  bool leave_out_bad_ones();
  at::Tensor read_now(int64_t epoch, int64_t sample, const Box& box) const;
  at::Tensor fetch(const Reading& reading);
  void read_ahead();
  void forget_ahead();

  const Dataset& data_;
  std::vector<Reading> readings_;
  LoaderOptions options_;
  Augmentation augmentation_;
  Communicator world_;
  std::vector<int64_t> left_out_;
  std::map<int64_t, std::vector<int64_t>> orders_;  // by epoch

  Position step_{0, 0};  // the current one
  std::vector<int64_t> samples_;
  std::vector<Ready> ready_;

  Position next_step_{0, 0};  // to be read ahead, from this reading on
  size_t next_reading_ = 0;
  std::deque<Ahead> ahead_;
  Workers workers_;  // last: its threads use the members above
};

}  // namespace mpi4dl
