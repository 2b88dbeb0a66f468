#include "graph/shape.hpp"

#include <fmt/ranges.h>

#include "base/error.hpp"

namespace mpi4dl {

int64_t positions(const Extents& space) {
  int64_t product = 1;
  for (const int64_t length : space) product *= length;
  return product;
}

int64_t Shape::elements() const {
  return channels * positions(space);
}

std::string to_string(const Shape& shape) {
  if (!shape.spatial()) return fmt::format("{}", shape.channels);
  return fmt::format("{}x{}", shape.channels, to_string(shape.space));
}

std::string to_string(const Extents& extents) {
  return fmt::format("{}", fmt::join(extents, "x"));
}

const Shape& only(const Shapes& inputs) {
  validate(inputs.size() == 1, "it has 1 input, not {}", inputs.size());
  return inputs.front();
}

const Shape& only_spatial(const Shapes& inputs) {
  const Shape& input = only(inputs);
  validate(input.spatial(), "it needs an input with spatial axes");
  return input;
}

void check_several(const Shapes& inputs) {
  validate(inputs.size() >= 2, "it needs at least 2 inputs, not {}", inputs.size());
}

void check_option(const char* name, const Extents& values, int64_t least, const Shape& input) {
  if (values.empty()) return;
  validate(values.size() == input.space.size(),
           "its {} {} needs one number for each of {} spatial axes", name, to_string(values),
           input.space.size());
  for (const int64_t value : values)
    validate(value >= least, "its {} {} must be at least {} on each axis", name, to_string(values),
             least);
}

void check_kernel(const Extents& kernel, const Shape& input) {
  validate(!kernel.empty(), "it has no kernel");
  check_option("kernel", kernel, 1, input);
}

void check_channels(int64_t in, int64_t out, int64_t groups) {
  validate(out >= 1, "it needs at least 1 output channel, not {}", out);
  validate(groups >= 1 && in % groups == 0 && out % groups == 0,
           "its {} groups must divide the {} input and {} output channels", groups, in, out);
}

}  // namespace mpi4dl
