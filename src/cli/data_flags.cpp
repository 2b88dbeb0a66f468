#include "cli/data_flags.hpp"

#include <CLI/CLI.hpp>
#include <numeric>

#include "base/error.hpp"
#include "cli/checks.hpp"
#include "data/subset.hpp"
#include "data/synthetic.hpp"

namespace mpi4dl {
namespace {

DataParts open_synthetic(const DataFlags& flags, const DataRequest& request) {
  const SyntheticOptions options{
      .size = flags.images == 0 ? request.synthetic_images : flags.images,
      .classes = request.classes,
      .image = request.image,
      .seed = request.seed};
  std::shared_ptr<const Dataset> all;
  if (flags.application() == "random")
    all = std::make_shared<RandomImages>(options);
  else
    all = std::make_shared<SyntheticImages>(options);
  std::vector<int64_t> labels(all->size());
  for (int64_t i = 0; i < all->size(); ++i) labels[i] = all->label(i);
  std::vector<uint64_t> keys(all->size());
  std::iota(keys.begin(), keys.end(), 0);
  return split(all, hold_out(labels, keys, flags.val_fraction));
}

}  // namespace

void DataFlags::add_to(CLI::App& command) {
  command.add_option("--app", app, "Images: synthetic (3), random, cifar (2) or medical (1)")
      ->check(CLI::IsMember({"synthetic", "random", "cifar", "medical", "1", "2", "3"}));
  command.add_option("--num-images", images, "Synthetic images of an epoch")
      ->check(at_least(1))
      ->default_str("ten effective batches");
  command
      .add_option("--val-fraction", val_fraction,
                  "Hold out this share of each class for validation")
      ->check(at_least(0));
}

std::string DataFlags::application() const {
  if (app == "1") return "medical";
  if (app == "2") return "cifar";
  if (app == "3") return "synthetic";
  return app;
}

DataParts open_data(const DataFlags& flags, const DataRequest& request,
                    const Communicator& /*world*/) {
  const std::string app = flags.application();
  validate(app != "medical" && app != "cifar",
           "--app {}: this version reads no image files yet; use synthetic or random", flags.app);
  validate(flags.val_fraction < 1, "--val-fraction {} leaves nothing to train on; use less than 1",
           flags.val_fraction);
  return open_synthetic(flags, request);
}

}  // namespace mpi4dl
