#pragma once

#include <cstdio>
#include <vector>

#include "data/dataset.hpp"
#include "data/view.hpp"

namespace mpi4dl {

/// Reads images of CIFAR-10 in its binary version: records of a label and 32x32 pixels, channels
/// first. Records are read where they lie.
class Cifar : public Dataset {
 public:
  static constexpr int64_t kClasses = 10;

  /// Throws UsageError where a file is missing or has another form. `canvas`: height and width at
  /// which images are shown; empty: 32x32.
  Cifar(const std::vector<std::string>& files, Extents canvas, Fit fit);
  int64_t size() const override { return size_; }
  Extents extent(int64_t /*sample*/) const override { return canvas_; }
  int64_t label(int64_t sample) const override;
  std::string name(int64_t sample) const override;
  at::Tensor read(int64_t sample, const Box& box) const override;

 private:
  struct File {
    std::string path;
    std::unique_ptr<std::FILE, int (*)(std::FILE*)> handle;
    int64_t records;
  };
  struct Place {
    const File* file;
    int64_t record;
  };
  Place find(int64_t sample) const;
  void read_bytes(int64_t sample, int64_t offset, int64_t count, uint8_t* bytes) const;

  std::vector<File> files_;
  int64_t size_ = 0;
  Extents canvas_;
  Placement placement_;
};

/// Opens the training part (data_batch_*.bin) and the validation part (test_batch.bin) in a folder.
DataParts open_cifar(const std::string& folder, const Extents& canvas, Fit fit);

/// Returns whether the folder has files of CIFAR-10.
bool is_cifar(const std::string& folder);

}  // namespace mpi4dl
