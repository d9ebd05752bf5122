// A zip file ends with its directory, in which each entry has its name, sizes and position.
#include "weft/base/zip.h"

#include <cstdint>

#include "absl/strings/match.h"
#include "weft/base/little_endian.h"
#include "weft/base/status.h"

namespace weft {
namespace {

using Bytes = absl::string_view;

// Returns the `size` bytes from `begin` on, or an error that says that `what` is damaged.
absl::StatusOr<Bytes> Range(Bytes bytes, uint64_t begin, uint64_t size, absl::string_view what) {
  if (begin <= bytes.size() && size <= bytes.size() - begin) return bytes.substr(begin, size);
  return InvalidArgument("its ", what, " is damaged, or runs past the end of the file");
}

// Reads one entry of the directory of a zip file, without its fixed part: name, extra fields and comment follow.
absl::StatusOr<Bytes> ReadEntry(Bytes file, Bytes fixed, Bytes name, Bytes extra) {
  uint64_t size = LittleEndian<uint32_t>(fixed.substr(24)), packed = LittleEndian<uint32_t>(fixed.substr(20));
  uint64_t begin = LittleEndian<uint32_t>(fixed.substr(42));
  while (extra.size() >= 4) {
    const auto id = LittleEndian<uint16_t>(extra), length = LittleEndian<uint16_t>(extra.substr(2));
    WEFT_ASSIGN_OR_RETURN(Bytes field, Range(extra, 4, length, "zip directory"));
    extra.remove_prefix(4u + length);
    for (uint64_t* const number : {&size, &packed, &begin}) {  // which have 64 bits if they do not fit 32
      if (id != 1 || *number != 0xffffffff || field.size() < 8) continue;
      *number = LittleEndian<uint64_t>(field);
      field.remove_prefix(8);
    }
  }
  const bool encrypted = (LittleEndian<uint16_t>(fixed.substr(8)) & 1) != 0;
  if (LittleEndian<uint16_t>(fixed.substr(10)) != 0 || packed != size || encrypted) {
    return InvalidArgument("its entry '", name, "' is compressed or encrypted; wanted it stored as it is");
  }
  constexpr size_t kHeader = 30;
  WEFT_ASSIGN_OR_RETURN(const Bytes header, Range(file, begin, kHeader, "zip entry"));
  if (!absl::StartsWith(header, "PK\x03\x04")) return InvalidArgument("its entry '", name, "' is damaged");
  const size_t names = LittleEndian<uint16_t>(header.substr(26)) + LittleEndian<uint16_t>(header.substr(28));
  return Range(file, begin + kHeader + names, size, "zip entry");
}

}  // namespace

absl::StatusOr<ZipFile> ReadZip(Bytes file) {
  constexpr size_t kEnd = 22, kEnd64 = 56, kLocator = 20, kEntry = 46;
  const size_t end = file.rfind("PK\x05\x06");
  if (end == Bytes::npos || file.size() - end < kEnd) return InvalidArgument("it has no zip directory");
  uint64_t count = LittleEndian<uint16_t>(file.substr(end + 10)), size = LittleEndian<uint32_t>(file.substr(end + 12));
  uint64_t begin = LittleEndian<uint32_t>(file.substr(end + 16));
  if (end >= kLocator && absl::StartsWith(file.substr(end - kLocator), "PK\x06\x07")) {
    const auto offset = LittleEndian<uint64_t>(file.substr(end - kLocator + 8));
    WEFT_ASSIGN_OR_RETURN(const Bytes end64, Range(file, offset, kEnd64, "zip directory"));
    count = LittleEndian<uint64_t>(end64.substr(32));
    size = LittleEndian<uint64_t>(end64.substr(40));
    begin = LittleEndian<uint64_t>(end64.substr(48));
  }
  WEFT_ASSIGN_OR_RETURN(Bytes directory, Range(file, begin, size, "zip directory"));
  ZipFile entries;
  for (; count > 0; --count) {
    WEFT_ASSIGN_OR_RETURN(const Bytes fixed, Range(directory, 0, kEntry, "zip directory"));
    const size_t name = LittleEndian<uint16_t>(fixed.substr(28)), extra = LittleEndian<uint16_t>(fixed.substr(30));
    const size_t whole = kEntry + name + extra + LittleEndian<uint16_t>(fixed.substr(32));
    WEFT_RETURN_IF_ERROR(Range(directory, 0, whole, "zip directory").status());
    const Bytes named = directory.substr(kEntry, name);
    WEFT_ASSIGN_OR_RETURN(const Bytes contents, ReadEntry(file, fixed, named, directory.substr(kEntry + name, extra)));
    if (!entries.emplace(named, contents).second) return InvalidArgument("it has the entry '", named, "' twice");
    directory.remove_prefix(whole);
  }
  return entries;
}

}  // namespace weft
