#include "storage/zip_archive.hpp"

#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "storage/durable_file.hpp"

namespace mpi4dl {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

constexpr int64_t kMostEntries = 200'000;
constexpr int64_t kMostDirectoryBytes = int64_t{64} << 20;
constexpr int64_t kLongestName = 4096;
constexpr int64_t kEndBytes = 22, kEnd64Bytes = 56, kLocator64Bytes = 20;
constexpr int64_t kHeaderBytes = 30, kDirectoryEntryBytes = 46;
constexpr uint32_t kInZip64 = 0xffffffff;  // in place of a number that needs 64 bits

/// Takes little-endian numbers off the front of some bytes.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  std::string_view bytes(size_t count) {
    ensure(count <= rest_.size(), "its directory ends too early");
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }
  template <typename T>
  T number() {
    T value{};
    std::memcpy(&value, bytes(sizeof(T)).data(), sizeof(T));
    return value;
  }
  bool empty() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

std::string read_bytes(const std::string& path, int64_t begin, int64_t bytes) {
  std::string text(bytes, '\0');
  read_range(path, begin, text.data(), text.size());
  return text;
}

/// Says where the directory lies, from the beginning of the archive.
struct Directory {
  int64_t begin = 0, bytes = 0, entries = 0;
};

Directory read_end64(const std::string& path, int64_t begin, int64_t locator) {
  const std::string text = read_bytes(path, begin + locator, kLocator64Bytes);
  ByteReader found(text);
  ensure(found.bytes(4) == "PK\6\7", "its directory has no place");
  found.number<uint32_t>();
  const auto place = static_cast<int64_t>(found.number<uint64_t>());
  ensure(place >= 0 && place <= locator - kEnd64Bytes, "its directory has no place");
  const std::string end_text = read_bytes(path, begin + place, kEnd64Bytes);
  ByteReader end(end_text);
  ensure(end.bytes(4) == "PK\6\6", "its directory has no place");
  end.bytes(28);  // sizes, versions, disks and the entries on this one
  Directory directory;
  directory.entries = static_cast<int64_t>(end.number<uint64_t>());
  directory.bytes = static_cast<int64_t>(end.number<uint64_t>());
  directory.begin = static_cast<int64_t>(end.number<uint64_t>());
  return directory;
}

/// Reads the last record, behind which there may be a comment of up to 64 KiB.
Directory find_directory(const std::string& path, int64_t begin, int64_t bytes) {
  ensure(bytes >= kEndBytes, "it is no zip archive");
  const int64_t tail_bytes = std::min<int64_t>(bytes, kEndBytes + 65535);
  const std::string tail = read_bytes(path, begin + bytes - tail_bytes, tail_bytes);
  const size_t place = tail.rfind("PK\5\6", tail.size() - kEndBytes);
  ensure(place != std::string::npos, "it is no zip archive, or its end is missing");
  ByteReader end(std::string_view(tail).substr(place));
  end.bytes(10);  // mark, disks and the entries on this one
  const auto entries = end.number<uint16_t>();
  const auto size = end.number<uint32_t>(), offset = end.number<uint32_t>();
  Directory directory{offset, size, entries};
  const int64_t locator = bytes - tail_bytes + static_cast<int64_t>(place) - kLocator64Bytes;
  if (entries == 0xffff || size == kInZip64 || offset == kInZip64) {
    ensure(locator >= 0, "its directory has no place");
    directory = read_end64(path, begin, locator);
  }
  ensure(directory.entries >= 0 && directory.entries <= kMostEntries, "it has {} entries",
         directory.entries);
  ensure(directory.bytes >= 0 && directory.bytes <= kMostDirectoryBytes,
         "its directory has {} bytes", directory.bytes);
  ensure(directory.begin >= 0 && directory.begin <= bytes - directory.bytes,
         "its directory is not in the file");
  return directory;
}

/// ListedEntry is an entry as the directory has it.
struct ListedEntry {
  std::string name;
  uint64_t stored = 0, bytes = 0, header = 0;
  uint32_t crc32 = 0;
  bool compressed = false;
};

/// Takes those numbers that need 64 bits from the fields behind the name.
void read_zip64(std::string_view fields, ListedEntry& entry) {
  ByteReader rest(fields);
  while (!rest.empty()) {
    const auto kind = rest.number<uint16_t>();
    const auto length = rest.number<uint16_t>();
    ByteReader field(rest.bytes(length));
    if (kind != 1) continue;
    for (uint64_t* number : {&entry.bytes, &entry.stored, &entry.header})
      if (*number == kInZip64) *number = field.number<uint64_t>();
  }
}

ListedEntry next_entry(ByteReader& directory) {
  ensure(directory.bytes(4) == "PK\1\2", "its directory is damaged");
  directory.bytes(4);  // versions
  const auto flags = directory.number<uint16_t>(), method = directory.number<uint16_t>();
  directory.bytes(4);  // time
  ListedEntry entry;
  entry.crc32 = directory.number<uint32_t>();
  entry.stored = directory.number<uint32_t>();
  entry.bytes = directory.number<uint32_t>();
  const auto name = directory.number<uint16_t>(), fields = directory.number<uint16_t>(),
             comment = directory.number<uint16_t>();
  directory.bytes(8);  // disk and attributes
  entry.header = directory.number<uint32_t>();
  entry.name = directory.bytes(name);
  read_zip64(directory.bytes(fields), entry);
  directory.bytes(comment);
  ensure((flags & 1) == 0, "its entry '{}' is encrypted", entry.name);
  ensure(method != 0 || entry.stored == entry.bytes, "its entry '{}' has two sizes", entry.name);
  entry.compressed = method != 0;
  return entry;
}

void check_name(const std::string& name) {
  const bool leads_out = name.empty() || name.front() == '/' || name == ".." ||
                         name.starts_with("../") || name.ends_with("/..") ||
                         name.find("/../") != std::string::npos ||
                         name.find('\\') != std::string::npos || name.find('\0') != name.npos;
  ensure(!leads_out && static_cast<int64_t>(name.size()) <= kLongestName,
         "its entry '{}' has a name that leads out of the archive", name.substr(0, 80));
}

/// Returns where the bytes of an entry begin, behind a header that repeats its name.
int64_t data_begin(const std::string& path, int64_t begin, int64_t directory,
                   const ListedEntry& entry) {
  const auto header = static_cast<int64_t>(entry.header);
  const auto name_bytes = static_cast<int64_t>(entry.name.size());
  ensure(header >= 0 && header <= directory - kHeaderBytes - name_bytes,
         "its entry '{}' is not in the file", entry.name);
  const std::string text = read_bytes(path, begin + header, kHeaderBytes + name_bytes);
  ByteReader found(text);
  ensure(found.bytes(4) == "PK\3\4", "its entry '{}' is not where its directory says", entry.name);
  found.bytes(22);
  const auto name = found.number<uint16_t>(), fields = found.number<uint16_t>();
  ensure(name == name_bytes && found.bytes(name) == entry.name,
         "its entry '{}' has another name in its header", entry.name);
  const int64_t data = header + kHeaderBytes + name + fields;
  ensure(data <= directory && entry.stored <= static_cast<uint64_t>(directory - data),
         "its entry '{}' is longer than the file", entry.name);
  return data;
}

}  // namespace

ZipArchive::ZipArchive(const std::string& path) : ZipArchive(path, 0, file_size(path)) {}

ZipArchive::ZipArchive(std::string path, int64_t begin, int64_t bytes) : path_(std::move(path)) {
  const Directory place = find_directory(path_, begin, bytes);
  const std::string text = read_bytes(path_, begin + place.begin, place.bytes);
  ByteReader directory(text);
  std::vector<std::pair<int64_t, int64_t>> occupied;
  for (int64_t i = 0; i < place.entries; ++i) {
    const ListedEntry entry = next_entry(directory);
    check_name(entry.name);
    const int64_t data = data_begin(path_, begin, place.begin, entry);
    const auto size = static_cast<int64_t>(entry.stored);
    const bool is_new =
        entries_.emplace(entry.name, ZipEntry{begin + data, size, entry.crc32, entry.compressed})
            .second;
    ensure(is_new, "it has two entries '{}'", entry.name);
    occupied.emplace_back(entry.header, data + size);
  }
  std::ranges::sort(occupied);
  for (size_t i = 1; i < occupied.size(); ++i)
    ensure(occupied[i - 1].second <= occupied[i].first, "two of its entries overlap");
}

const ZipEntry* ZipArchive::find(const std::string& name) const {
  const auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : &found->second;
}

std::optional<std::string> ZipArchive::find_ending(const std::string& end) const {
  for (const auto& [name, entry] : entries_)
    if (name == end || name.substr(name.find('/') + 1) == end) return name;
  return std::nullopt;
}

std::string ZipArchive::name_ending(const std::string& end) const {
  const std::optional<std::string> name = find_ending(end);
  ensure(name.has_value(), "it has no entry '{}'", end);
  return *name;
}

std::string ZipArchive::read(const std::string& name, int64_t most) const {
  const ZipEntry& entry = entries_.at(name);
  ensure(entry.bytes <= most, "its entry '{}' has {} bytes; {} are the most", name, entry.bytes,
         most);
  std::string text(entry.bytes, '\0');
  read(name, text.data());
  return text;
}

void ZipArchive::read(const std::string& name, void* data) const {
  const ZipEntry& entry = entries_.at(name);
  ensure(!entry.compressed, "its entry '{}' is compressed; torch stores such entries as they are",
         name);
  read_range(path_, entry.begin, data, entry.bytes);
  const uLong sum = crc32_z(0, static_cast<const Bytef*>(data), entry.bytes);
  ensure(sum == entry.crc32, "its entry '{}' is damaged: the checksum is not the one it had", name);
}

}  // namespace mpi4dl
