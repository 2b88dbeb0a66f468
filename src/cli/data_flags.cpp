#include "cli/data_flags.hpp"

#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <numeric>

#include "base/error.hpp"
#include "base/random.hpp"
#include "cli/checks.hpp"
#include "comm/collectives.hpp"
#include "data/cifar.hpp"
#include "data/subset.hpp"
#include "data/synthetic.hpp"

namespace mpi4dl {
namespace {

constexpr const char* kDefaultPath = "./train";

std::string path_of(const DataFlags& flags) {
  return flags.path.empty() ? kDefaultPath : flags.path;
}

void check_path(const DataFlags& flags) {
  validate(!flags.path.empty() || std::filesystem::exists(kDefaultPath),
           "there is no folder {}, and --datapath names no other", kDefaultPath);
}

/// Returns, by sample, whether it is held out; samples of a group stay together.
std::vector<bool> hold_out_share(const Dataset& all, const std::vector<uint64_t>& groups,
                                 double fraction) {
  std::vector<int64_t> labels(all.size());
  for (int64_t i = 0; i < all.size(); ++i) labels[i] = all.label(i);
  std::vector<bool> held_out = hold_out(labels, groups, fraction);
  validate(fraction == 0 || std::ranges::find(held_out, true) != held_out.end(),
           "--val-fraction {} of {} image{} holds out none of them; use a larger share", fraction,
           all.size(), all.size() == 1 ? "" : "s");
  return held_out;
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
  return split(all, hold_out_share(*all, keys, flags.val_fraction));
}

/// Throws Error where a folder is not the same on every node: ranks would get parts of different
/// images.
void check_agreement(const ImageList& list, const std::string& path, const Communicator& world) {
  struct Sight {
    uint64_t hash;
    int64_t images;
  };
  Sight mine{0, static_cast<int64_t>(list.images.size())};
  for (const std::string& name : list.classes) mine.hash = combine_keys(mine.hash, key_of(name));
  for (const ListedImage& image : list.images)
    mine.hash = combine_keys(combine_keys(combine_keys(mine.hash, image.key), image.group()),
                             static_cast<uint64_t>(2 * image.label + (image.validation ? 1 : 0)));
  const std::vector<Sight> all = all_gather(mine, world);
  for (size_t rank = 1; rank < all.size(); ++rank)
    ensure(
        all[rank].hash == all[0].hash,
        "rank {} sees other images in {} than rank 0 ({} and {} of them); it must be the same on "
        "every node",
        rank, path, all[rank].images, all[0].images);
}

/// Lists the images; their classes get the indices that the model gives them.
ImageList list_files(const std::string& path, const DataRequest& request) {
  ImageList list = list_images(path);
  validate(request.labelled || list.loose.empty(),
           "{} has folders of images and images beside them, such as {}; which are meant? Put them "
           "into one folder, or into a CSV file with a column path",
           path, list.loose);
  match_classes(list, request.names, path);
  check_classes(list, request.classes, path);
  if (request.labelled) check_labels(list);
  return list;
}

DataParts open_files(const DataFlags& flags, const DataRequest& request,
                     const Communicator& world) {
  const std::string path = path_of(flags);
  const ImageList list = list_files(path, request);
  validate(!list.has_split || flags.val_fraction == 0,
           "--val-fraction {}: {} already says what is for validation", flags.val_fraction, path);
  check_agreement(list, path, world);
  const auto files =
      std::make_shared<const ImageFiles>(list.images, flags.view.options(request.image.space));
  std::vector<bool> held_out;
  std::vector<uint64_t> groups;
  for (const ListedImage& image : list.images) {
    held_out.push_back(image.validation);
    groups.push_back(image.group());
  }
  if (!list.has_split) held_out = hold_out_share(*files, groups, flags.val_fraction);
  check_apart(list, held_out, path);
  DataParts parts = split(files, held_out);
  parts.classes = list.classes;
  return parts;
}

DataParts open_cifar_files(const DataFlags& flags, const DataRequest& request) {
  validate(request.classes == Cifar::kClasses, "CIFAR-10 has {} classes, but --num-classes is {}",
           Cifar::kClasses, request.classes);
  validate(flags.val_fraction == 0, "--val-fraction {}: CIFAR-10 has test_batch.bin for validation",
           flags.val_fraction);
  DataParts parts =
      open_cifar(path_of(flags), request.image.space, flags.view.options(request.image.space).fit);
  validate(request.names.empty() || request.names == parts.classes,
           "CIFAR-10 has the classes {}, but those of the model are {}",
           fmt::join(parts.classes, ", "), fmt::join(request.names, ", "));
  return parts;
}

}  // namespace

void DataFlags::add_to(CLI::App& command) {
  command.option_defaults()->group("Data");
  default_in_words(
      command
          .add_option(
              "--app", app,
              "Images: synthetic (3), random, cifar (2: CIFAR-10) or medical (1: image files)")
          ->check(CLI::IsMember({"synthetic", "random", "cifar", "medical", "1", "2", "3"})),
      "synthetic, or what --datapath holds");
  default_in_words(
      command.add_option(
          "--datapath", path,
          "Folder with a folder of images for each class, CSV file with columns path,label, folder "
          "of CIFAR-10; to predict also a folder of images, one image or one slide"),
      kDefaultPath);
  default_in_words(
      command.add_option("--num-images", images, "Synthetic images per epoch")->check(at_least(1)),
      "ten effective batches");
  command
      .add_option("--val-fraction", val_fraction,
                  "Hold out this share of each class for validation")
      ->check(at_least(0));
  view.add_to(command);
  command.add_option("--normalise", normalise,
                     "Pixels become (x - MEAN) / STD, where x goes from 0 to 1: none, imagenet, or "
                     "MEAN,STD, each one number or one for each channel: "
                     "0.485:0.456:0.406,0.229:0.224:0.225");
}

std::string DataFlags::application() const {
  const bool none = path.empty() || (of_benchmark && path == kDefaultPath);
  if (app.empty()) return none ? "synthetic" : is_cifar(path) ? "cifar" : "medical";
  if (app == "1") return "medical";
  if (app == "2") return "cifar";
  if (app == "3") return "synthetic";
  return app;
}

bool DataFlags::reads_files() const {
  return application() == "medical" || application() == "cifar";
}

void DataFlags::check() const {
  const bool files = application() == "medical", generated = !reads_files();
  validate(generated || images == 0, "--num-images {} requires --app synthetic or random", images);
  validate(!generated || path_of(*this) == kDefaultPath,
           "--datapath {} requires --app medical or cifar", path);
  validate(!generated || view.fit == "exact", "--fit {} requires --app medical or cifar", view.fit);
  validate(files || (view.level == 0 && view.micrometres == 0),
           "--level and --mpp require --app medical");
  normalisation();
  validate(val_fraction < 1, "--val-fraction {} leaves nothing to train on; use less than 1",
           val_fraction);
}

DataParts open_data(const DataFlags& flags, const DataRequest& request, const Communicator& world) {
  const std::string app = flags.application();
  flags.normalisation().check_channels(request.image.channels);
  if (flags.reads_files()) check_path(flags);
  DataParts parts = app == "medical" ? open_files(flags, request, world)
                    : app == "cifar" ? open_cifar_files(flags, request)
                                     : open_generated(flags, request);
  if (parts.classes.empty()) parts.classes = request.names;
  return parts;
}

}  // namespace mpi4dl
