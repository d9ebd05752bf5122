#include "weft/base/regular_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "weft/base/status.h"

namespace weft {
namespace {

// Opens a regular file for reading, and sets `*size` to its bytes.
absl::StatusOr<Descriptor> OpenRegularFile(const std::string& path, int64_t* size) {
  struct stat about;  // opening a pipe may wait for its writer, and closing it may end the writer
  if (stat(path.c_str(), &about) != 0) return SystemStatus("open", path, errno);
  if (S_ISDIR(about.st_mode)) return InvalidArgument("cannot read ", path, ": it is a folder, not a file");
  if (!S_ISREG(about.st_mode)) return InvalidArgument("cannot read ", path, ": it is not a regular file");
  Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0 || fstat(file.get(), &about) != 0) return SystemStatus("open", path, errno);
  // Checked again, because another file may have taken the path since.
  if (!S_ISREG(about.st_mode)) return InvalidArgument("cannot read ", path, ": it is not a regular file");
  *size = about.st_size;
  return file;
}

}  // namespace

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

absl::StatusOr<RandomAccessFile> RandomAccessFile::Open(const std::string& path, bool in_order) {
  int64_t size = 0;
  WEFT_ASSIGN_OR_RETURN(Descriptor file, OpenRegularFile(path, &size));
  posix_fadvise(file.get(), 0, 0, in_order ? POSIX_FADV_SEQUENTIAL : POSIX_FADV_RANDOM);
  return RandomAccessFile(path, std::move(file), size);
}

absl::Status RandomAccessFile::Read(int64_t begin, size_t size, void* out) const {
  for (size_t done = 0; done < size;) {
    const off_t at = begin + static_cast<off_t>(done);
    const ssize_t bytes = pread(descriptor_.get(), static_cast<char*>(out) + done, size - done, at);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) return SystemStatus("read", path_, errno);
    if (bytes == 0) {
      return absl::DataLossError(absl::StrCat(path_, " ends at byte ", at, "; it had ", size_, " when it was opened"));
    }
    done += static_cast<size_t>(bytes);
  }
  return absl::OkStatus();
}

}  // namespace weft
