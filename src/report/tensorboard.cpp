#include "report/tensorboard.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <chrono>

namespace mpi4dl {
namespace {

static_assert(std::endian::native == std::endian::little, "files are written as memory is");

std::array<uint32_t, 256> crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < table.size(); ++byte) {
    table[byte] = byte;
    for (int bit = 0; bit < 8; ++bit)
      table[byte] = (table[byte] >> 1) ^ ((table[byte] & 1) != 0 ? 0x82f63b78U : 0U);
  }
  return table;
}

/// Rotates and offsets a checksum, because one of bytes that contain checksums is weak.
uint32_t masked_crc(std::string_view bytes) {
  return std::rotr(crc32c(bytes), 15) + 0xa282ead8U;
}

template <typename T>
std::string raw(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>((value & 0x7f) | 0x80);
  return bytes + static_cast<char>(value);
}

// Fields of a message: the number of the field and how it is encoded, then its value.
std::string key(int field, int wire) {
  return varint(static_cast<uint64_t>(field) << 3 | static_cast<uint64_t>(wire));
}
std::string field(int number, int64_t value) {
  return key(number, 0) + varint(static_cast<uint64_t>(value));
}
std::string field(int number, double value) {
  return key(number, 1) + raw(value);
}
std::string field(int number, float value) {
  return key(number, 5) + raw(value);
}
std::string field(int number, const std::string& bytes) {
  return key(number, 2) + varint(bytes.size()) + bytes;
}

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string host() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  static const std::array<uint32_t, 256> table = crc_table();
  uint32_t crc = ~0U;
  for (const char byte : bytes)
    crc = (crc >> 8) ^ table[(crc ^ static_cast<unsigned char>(byte)) & 0xff];
  return ~crc;
}

TensorBoardFile::TensorBoardFile(const std::string& folder, int64_t first_step)
    : file_(fmt::format("{}/events.out.tfevents.{:010}.{}.{}", folder, static_cast<int64_t>(now()),
                        host(), getpid()),
            AppendFile::Start::empty) {
  constexpr int64_t kStart = 1;
  write(0, field(3, std::string("brain.Event:2")));
  write(first_step, field(7, field(1, kStart)));
}

void TensorBoardFile::add(int64_t step, const Scalars& scalars) {
  std::string summary;
  for (const auto& [tag, value] : scalars)
    summary += field(1, field(1, tag) + field(2, static_cast<float>(value)));
  write(step, field(5, summary));
}

void TensorBoardFile::write(int64_t step, const std::string& what) {
  const std::string event = field(1, now()) + field(2, step) + what;
  const std::string length = raw(static_cast<uint64_t>(event.size()));
  file_.append(length + raw(masked_crc(length)) + event + raw(masked_crc(event)));
}

}  // namespace mpi4dl
