#include "weft/core/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "weft/core/file.h"
#include "weft/core/status.h"

namespace weft {

absl::StatusOr<MappedFile> MappedFile::Open(const std::string& path) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return SystemStatus("open", path, errno);
  struct stat about;
  if (fstat(file.get(), &about) != 0) return SystemStatus("read", path, errno);
  if (S_ISDIR(about.st_mode)) return InvalidArgument("cannot read ", path, ": it is a folder, not a file");
  if (!S_ISREG(about.st_mode)) return InvalidArgument("cannot read ", path, ": it is not a regular file");
  const size_t size = static_cast<size_t>(about.st_size);
  if (size == 0) return MappedFile();  // nothing can be mapped
  void* const data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, file.get(), 0);
  if (data == MAP_FAILED) return SystemStatus("map", path, errno);
  return MappedFile(static_cast<std::byte*>(data), size);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(data_, size_);
}

}  // namespace weft
