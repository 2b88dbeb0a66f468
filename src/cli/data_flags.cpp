#include "cli/data_flags.hpp"

#include <CLI/CLI.hpp>
#include <numeric>

#include "base/error.hpp"
#include "base/random.hpp"
#include "cli/checks.hpp"
#include "comm/communicator.hpp"
#include "data/cifar.hpp"
#include "data/subset.hpp"
#include "data/synthetic.hpp"

namespace mpi4dl {
namespace {

std::string path_of(const DataFlags& flags) {
  return flags.path.empty() ? "./train" : flags.path;
}

void check_flags(const DataFlags& flags) {
  const std::string app = flags.application();
  const bool files = app == "medical", generated = app == "synthetic" || app == "random";
  validate(generated || flags.images == 0,
           "--num-images {} has a meaning only with --app synthetic or random", flags.images);
  validate(!generated || flags.path.empty(),
           "--datapath {} has a meaning only with --app medical or cifar", flags.path);
  validate(!generated || flags.view.fit == "exact",
           "--fit {} has a meaning only with --app medical or cifar", flags.view.fit);
  validate(files || (flags.view.level == 0 && flags.view.micrometres == 0),
           "--level and --mpp have a meaning only with --app medical");
}

DataParts hold_out_share(const std::shared_ptr<const Dataset>& all,
                         const std::vector<uint64_t>& keys, double fraction) {
  std::vector<int64_t> labels(all->size());
  for (int64_t i = 0; i < all->size(); ++i) labels[i] = all->label(i);
  return split(all, hold_out(labels, keys, fraction));
}

DataParts open_generated(const DataFlags& flags, const DataRequest& request) {
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
  std::vector<uint64_t> keys(all->size());
  std::iota(keys.begin(), keys.end(), 0);
  return hold_out_share(all, keys, flags.val_fraction);
}

/// A folder that is not the same on every node would give ranks parts of different images.
void check_agreement(const ImageList& list, const std::string& path, const Communicator& world) {
  struct Sight {
    uint64_t hash;
    int64_t images;
  };
  Sight mine{0, static_cast<int64_t>(list.images.size())};
  for (const ListedImage& image : list.images)
    mine.hash = combine_keys(combine_keys(mine.hash, image.key),
                             static_cast<uint64_t>(2 * image.label + (image.validation ? 1 : 0)));
  const std::vector<Sight> all = all_gather(world, mine);
  for (size_t rank = 1; rank < all.size(); ++rank)
    ensure(
        all[rank].hash == all[0].hash,
        "rank {} sees other images in {} than rank 0 ({} and {} of them); it must be the same on "
        "every node",
        rank, path, all[rank].images, all[0].images);
}

DataParts open_files(const DataFlags& flags, const DataRequest& request,
                     const Communicator& world) {
  const std::string path = path_of(flags);
  const ImageList list = list_images(path);
  if (request.labelled) check_classes(list, request.classes, path);
  validate(!list.has_split || flags.val_fraction == 0,
           "--val-fraction {}: {} already says what is for validation", flags.val_fraction, path);
  check_agreement(list, path, world);
  const auto files =
      std::make_shared<const ImageFiles>(list.images, flags.view.options(request.image.space));
  std::vector<bool> held_out;
  std::vector<uint64_t> keys;
  for (const ListedImage& image : list.images) {
    held_out.push_back(image.validation);
    keys.push_back(image.key);
  }
  return list.has_split ? split(files, held_out) : hold_out_share(files, keys, flags.val_fraction);
}

DataParts open_cifar_files(const DataFlags& flags, const DataRequest& request) {
  validate(!request.labelled || request.classes == Cifar::kClasses,
           "CIFAR-10 has {} classes, but --num-classes is {}", Cifar::kClasses, request.classes);
  validate(flags.val_fraction == 0, "--val-fraction {}: CIFAR-10 has test_batch.bin for validation",
           flags.val_fraction);
  return open_cifar(path_of(flags), request.image.space,
                    flags.view.options(request.image.space).fit);
}

}  // namespace

void DataFlags::add_to(CLI::App& command) {
  command.option_defaults()->group("Data");
  command
      .add_option("--app", app,
                  "Images: synthetic (3), random, cifar (2: CIFAR-10) or medical (1: image files)")
      ->check(CLI::IsMember({"synthetic", "random", "cifar", "medical", "1", "2", "3"}));
  command
      .add_option(
          "--datapath", path,
          "Folder with a folder of images for each class, CSV file with columns path,label, "
          "or folder of CIFAR-10")
      ->default_str("./train");
  command.add_option("--num-images", images, "Synthetic images of an epoch")
      ->check(at_least(1))
      ->default_str("ten effective batches");
  command
      .add_option("--val-fraction", val_fraction,
                  "Hold out this share of each class for validation")
      ->check(at_least(0));
  view.add_to(command);
}

std::string DataFlags::application() const {
  if (app == "1") return "medical";
  if (app == "2") return "cifar";
  if (app == "3") return "synthetic";
  return app;
}

DataParts open_data(const DataFlags& flags, const DataRequest& request, const Communicator& world) {
  check_flags(flags);
  validate(flags.val_fraction < 1, "--val-fraction {} leaves nothing to train on; use less than 1",
           flags.val_fraction);
  const std::string app = flags.application();
  if (app == "medical") return open_files(flags, request, world);
  if (app == "cifar") return open_cifar_files(flags, request);
  return open_generated(flags, request);
}

}  // namespace mpi4dl
