#include "weft/base/random_access_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "weft/base/status.h"

namespace weft {

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
