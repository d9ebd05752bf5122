#include "weft/base/mapped_file.h"

#include <sys/mman.h>

#include <cerrno>

#include "weft/base/file.h"
#include "weft/base/status.h"

namespace weft {

absl::StatusOr<MappedFile> MappedFile::Open(const std::string& path) {
  int64_t bytes = 0;
  WEFT_ASSIGN_OR_RETURN(const Descriptor file, OpenRegularFile(path, &bytes));
  const size_t size = static_cast<size_t>(bytes);
  if (size == 0) return MappedFile();  // nothing can be mapped
  void* const data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, file.get(), 0);
  if (data == MAP_FAILED) return SystemStatus("map", path, errno);
  return MappedFile(static_cast<std::byte*>(data), size);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(data_, size_);
}

}  // namespace weft
