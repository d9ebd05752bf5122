#include "weft/core/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "weft/core/file.h"
#include "weft/core/status.h"

namespace weft {
namespace {

// A page fault maps up to 64 KiB of cached pages around the address (fault_around_bytes of Linux). Also a multiple of
// every page size of Linux.
constexpr size_t kMappedAtOnce = size_t{64} << 10;

}  // namespace

absl::StatusOr<MappedFile> MappedFile::Open(const std::string& path) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return SystemStatus("open", path, errno);
  struct stat about;
  if (fstat(file.get(), &about) != 0) return SystemStatus("read", path, errno);
  if (S_ISDIR(about.st_mode)) return InvalidArgument("cannot read ", path, ": it is a folder, not a file");
  if (!S_ISREG(about.st_mode)) return InvalidArgument("cannot map ", path, ": it is not a regular file");
  const auto size = static_cast<size_t>(about.st_size);
  if (size == 0) return MappedFile();  // the system maps no empty range
  void* const address = mmap(nullptr, size, PROT_READ, MAP_SHARED, file.get(), 0);
  if (address == MAP_FAILED) return SystemStatus("map", path, errno);
  madvise(address, size, MADV_RANDOM);  // reading ahead in the file would read what no one asks for
  return MappedFile(absl::string_view(static_cast<const char*>(address), size));
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) munmap(const_cast<char*>(bytes_.data()), bytes_.size());
}

void MappedFile::Release(size_t begin, size_t size) const {
  const size_t end = std::min(bytes_.size(), (begin + size + kMappedAtOnce - 1) / kMappedAtOnce * kMappedAtOnce);
  begin = begin / kMappedAtOnce * kMappedAtOnce;
  if (begin < end) madvise(const_cast<char*>(bytes_.data()) + begin, end - begin, MADV_DONTNEED);
}

}  // namespace weft
