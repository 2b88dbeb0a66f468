#include "graph/operators.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace mpi4dl {
namespace {

const char* name(const Input&) {
  return "input";
}
const char* name(const Convolution&) {
  return "convolution";
}
const char* name(const TransposedConvolution&) {
  return "transposed convolution";
}
const char* name(const BatchNorm&) {
  return "batch norm";
}
const char* name(const GroupNorm&) {
  return "group norm";
}
const char* name(const Relu&) {
  return "relu";
}
const char* name(const MaxPool&) {
  return "max pooling";
}
const char* name(const AvgPool&) {
  return "average pooling";
}
const char* name(const GlobalAvgPool&) {
  return "global average pooling";
}
const char* name(const Upsample&) {
  return "upsampling";
}
const char* name(const Add&) {
  return "add";
}
const char* name(const Concat&) {
  return "concat";
}
const char* name(const Flatten&) {
  return "flatten";
}
const char* name(const Linear&) {
  return "linear";
}
const char* name(const Dropout&) {
  return "dropout";
}
const char* name(const Identity&) {
  return "identity";
}

}  // namespace

int64_t Shape::elements() const {
  int64_t product = channels;
  for (const int64_t length : space) product *= length;
  return product;
}

std::string to_string(const Shape& shape) {
  if (!shape.spatial()) return fmt::format("{}", shape.channels);
  return fmt::format("{}x{}", shape.channels, fmt::join(shape.space, "x"));
}

std::string kind(const Operator& op) {
  return std::visit([](const auto& alternative) { return name(alternative); }, op);
}

}  // namespace mpi4dl
