#include "data/image_files.hpp"

#include <cmath>

#include "base/error.hpp"

namespace mpi4dl {
namespace {

/// Returns the height and width at which a pixel has the size asked for.
Extents scaled_size(const ImageHeader& header, double micrometres, const std::string& name) {
  Extents size = header.levels[0];
  for (int axis = 0; axis < 2; ++axis) {
    const double own = header.micrometres[axis];
    ensure(
        own > 0,
        "cannot show {} at {} micrometres a pixel: nothing in it says how large a pixel is; choose "
        "a level instead",
        name, micrometres);
    ensure(own <= micrometres * 1.001,
           "cannot show {} at {} micrometres a pixel: its own have {:.4g}, and finer ones are not "
           "made up",
           name, micrometres, own);
    size[axis] =
        std::max<int64_t>(1, std::llround(static_cast<double>(size[axis]) * own / micrometres));
  }
  return size;
}

/// Returns the coarsest level that is not coarser than needed.
int level_for(const ImageHeader& header, const Extents& size) {
  int level = 0;
  for (int i = 1; i < static_cast<int>(header.levels.size()); ++i)
    if (header.levels[i][0] >= size[0] && header.levels[i][1] >= size[1]) level = i;
  return level;
}

}  // namespace

View view_of(const ImageHeader& header, const ViewOptions& options, const std::string& name) {
  View view{.level = options.level, .placement = {}, .canvas = {}};
  Extents size;
  if (options.micrometres > 0) {
    size = scaled_size(header, options.micrometres, name);
    view.level = level_for(header, size);
  } else {
    const auto levels = static_cast<int>(header.levels.size());
    ensure(options.level < levels, "cannot show level {} of {}: it has {} level{}, from 0 to {}",
           options.level, name, levels, levels == 1 ? "" : "s", levels - 1);
    size = header.levels[options.level];
  }
  size = header.orientation.shown(size);
  view.canvas = options.canvas.empty() ? size : options.canvas;
  view.placement = place(size, view.canvas, options.fit, name);
  return view;
}

ImageFiles::ImageFiles(std::vector<ListedImage> images, ViewOptions options)
    : images_(std::move(images)), options_(std::move(options)), headers_(images_.size()) {}

std::shared_ptr<const ImageHeader> ImageFiles::header(int64_t sample) const {
  {
    const std::scoped_lock lock(mutex_);
    if (headers_.at(sample)) return headers_[sample];
  }
  auto header = std::make_shared<const ImageHeader>(read_header(name(sample)));
  const std::scoped_lock lock(mutex_);
  return headers_[sample] = std::move(header);
}

Extents ImageFiles::extent(int64_t sample) const {
  if (!options_.canvas.empty()) return options_.canvas;
  return view_of(*header(sample), options_, name(sample)).canvas;
}

Problem ImageFiles::look_at(int64_t sample) const {
  auto kind = Problem::Kind::unreadable;
  try {
    const auto header = this->header(sample);
    kind = Problem::Kind::unsuitable;
    view_of(*header, options_, name(sample));
    return {};
  } catch (const Error& error) {
    return {kind, error.what()};
  }
}

at::Tensor ImageFiles::read(int64_t sample, const Box& box) const {
  const auto header = this->header(sample);
  const View view = view_of(*header, options_, name(sample));
  at::Tensor bytes;
  with_image(name(sample), *header, view.level, [&](Raster& image) {
    bytes = show(image, header->orientation, view.placement, box[2], box[3]);
  });
  return normalised(bytes, box[1]);
}

}  // namespace mpi4dl
