#include "data/cifar.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/error.hpp"

namespace mpi4dl {
namespace {

constexpr int64_t kSide = 32, kPlane = kSide * kSide, kRecord = 1 + 3 * kPlane;

/// Reads a record's pixels, which are stored channel by channel.
class CifarRaster : public Raster {
 public:
  explicit CifarRaster(const uint8_t* planes) : planes_(planes) {}
  int64_t height() const override { return kSide; }
  int64_t width() const override { return kSide; }

  void scan(const Interval& rows, const Interval& cols, const RowSink& take) override {
    std::array<uint8_t, 3 * kSide> row{};
    for (int64_t y = rows.begin; y < rows.end; ++y) {
      for (int64_t x = cols.begin; x < cols.end; ++x)
        for (int64_t c = 0; c < 3; ++c)
          row[3 * (x - cols.begin) + c] = planes_[c * kPlane + y * kSide + x];
      take(y, row.data());
    }
  }

 private:
  const uint8_t* planes_;
};

std::vector<std::string> batches_in(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code failure;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failure)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("data_batch_") && name.ends_with(".bin"))
      files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

Cifar::Cifar(const std::vector<std::string>& files, Extents canvas, Fit fit)
    : canvas_(canvas.empty() ? Extents{kSide, kSide} : std::move(canvas)) {
  try {
    placement_ = place({kSide, kSide}, canvas_, fit, "an image of CIFAR-10");
  } catch (const Error& error) {
    throw UsageError(error.what());
  }
  for (const std::string& path : files) {
    File file{path, {std::fopen(path.c_str(), "rbe"), std::fclose}, 0};
    validate(file.handle != nullptr, "cannot read {}: {}", file.path, std::strerror(errno));
    std::error_code failure;
    const auto bytes = static_cast<int64_t>(std::filesystem::file_size(file.path, failure));
    validate(!failure && bytes > 0 && bytes % kRecord == 0,
             "{} has {} bytes, which is no multiple of the {} that an image of CIFAR-10 takes; use "
             "the binary version",
             file.path, bytes, kRecord);
    file.records = bytes / kRecord;
    size_ += file.records;
    files_.push_back(std::move(file));
  }
}

Cifar::Place Cifar::find(int64_t sample) const {
  size_t file = 0;
  while (sample >= files_.at(file).records) sample -= files_[file++].records;
  return {&files_[file], sample};
}

void Cifar::read_bytes(int64_t sample, int64_t offset, int64_t count, uint8_t* bytes) const {
  const Place place = find(sample);
  const ssize_t got =
      pread(fileno(place.file->handle.get()), bytes, count, place.record * kRecord + offset);
  ensure(got == count, "cannot read {}: {}", name(sample),
         got < 0 ? std::strerror(errno) : "the file has become shorter");
}

int64_t Cifar::label(int64_t sample) const {
  uint8_t label = 0;
  read_bytes(sample, 0, 1, &label);
  ensure(label < kClasses, "cannot read {}: its label is {}, not below {}", name(sample), label,
         kClasses);
  return label;
}

std::string Cifar::name(int64_t sample) const {
  const Place place = find(sample);
  return fmt::format("{}:{}", place.file->path, place.record);
}

at::Tensor Cifar::read(int64_t sample, const Box& box) const {
  std::array<uint8_t, 3 * kPlane> planes{};
  read_bytes(sample, 1, planes.size(), planes.data());
  CifarRaster image(planes.data());
  return normalised(show(image, {}, placement_, box[2], box[3]), box[1]);
}

bool is_cifar(const std::string& folder) {
  std::error_code ignored;
  return std::filesystem::exists(std::filesystem::path(folder) / "data_batch_1.bin", ignored);
}

DataParts open_cifar(const std::string& folder, const Extents& canvas, Fit fit) {
  validate(std::filesystem::is_directory(folder), "there is no folder {}", folder);
  const std::vector<std::string> batches = batches_in(folder);
  validate(!batches.empty(),
           "{} has no files data_batch_*.bin; it must be the folder cifar-10-batches-bin of the "
           "binary version of CIFAR-10",
           folder);
  const std::string test = (std::filesystem::path(folder) / "test_batch.bin").string();
  return {
      std::make_shared<Cifar>(batches, canvas, fit),
      std::make_shared<Cifar>(std::vector{test}, canvas, fit),
      {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"}};
}

}  // namespace mpi4dl
