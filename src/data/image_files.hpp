#pragma once

#include <mutex>

#include "data/dataset.hpp"
#include "data/image_file.hpp"
#include "data/image_list.hpp"
#include "data/view.hpp"

namespace mpi4dl {

/// Says how an image file becomes an image of a data set.
struct ViewOptions {
  Extents canvas = {};  ///< height and width; empty: each image as large as it is
  Fit fit = Fit::exact;
  int level = 0;           ///< of a pyramid
  double micrometres = 0;  ///< size of a pixel, instead of a level; 0: not asked for
};

/// Holds images in files of their own. A file is opened when it is read, and its header kept.
class ImageFiles : public Dataset {
 public:
  ImageFiles(std::vector<ListedImage> images, ViewOptions options);
  int64_t size() const override { return static_cast<int64_t>(images_.size()); }
  Extents extent(int64_t sample) const override;
  int64_t label(int64_t sample) const override { return images_.at(sample).label; }
  std::string name(int64_t sample) const override { return images_.at(sample).path; }
  Problem look_at(int64_t sample) const override;
  at::Tensor read(int64_t sample, const Box& box) const override;

 private:
  std::shared_ptr<const ImageHeader> header(int64_t sample) const;

  std::vector<ListedImage> images_;
  ViewOptions options_;
  mutable std::mutex mutex_;
  mutable std::vector<std::shared_ptr<const ImageHeader>> headers_;  // of those looked at so far
};

/// Names a level of a file, and how it stands on the canvas.
struct View {
  int level = 0;
  Placement placement;
  Extents canvas;
};

/// Returns how a file is to be read. Throws Error where it cannot be shown so.
View view_of(const ImageHeader& header, const ViewOptions& options, const std::string& name);

}  // namespace mpi4dl
