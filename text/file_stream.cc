// zlib's gzread also returns the bytes of files that are not compressed.
#include "weft/text/file_stream.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <limits>

#include "weft/core/file.h"
#include "weft/core/status.h"

namespace weft {

void FileStream::Close::operator()(gzFile_s* file) const { gzclose_r(file); }

absl::StatusOr<FileStream> FileStream::Open(const std::string& path) {
  const std::string name = path.empty() ? "standard input" : path;
  const int fd = path.empty() ? dup(STDIN_FILENO) : open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return SystemStatus("open", name, errno);
  FileStream stream(name, gzdopen(fd, "rb"));  // closes `fd` later
  if (stream.file_ == nullptr) {
    close(fd);
    return absl::ResourceExhaustedError(absl::StrCat("no memory to read ", name));
  }
  struct stat about;
  if (fstat(fd, &about) != 0) return SystemStatus("read", name, errno);
  if (S_ISDIR(about.st_mode)) return InvalidArgument("cannot read ", name, ": it is a folder, not a file");
  constexpr unsigned kBuffer = 1 << 18;  // bytes: long against the cost of a read
  gzbuffer(stream.file_.get(), kBuffer);
  return stream;
}

absl::StatusOr<size_t> FileStream::Append(size_t max_bytes, std::string* text) {
  const size_t before = text->size();
  text->resize(before + std::min<size_t>(max_bytes, std::numeric_limits<int>::max()));
  const int bytes = gzread(file_.get(), text->data() + before, static_cast<unsigned>(text->size() - before));
  text->resize(before + static_cast<size_t>(std::max(bytes, 0)));
  int error = Z_OK;
  const char* const message = gzerror(file_.get(), &error);
  if (error == Z_ERRNO) return SystemStatus("read", name_, errno);
  if (error == Z_BUF_ERROR && bytes <= 0) return InvalidArgument(name_, ": can't decompress it: it is cut off");
  if (bytes < 0) return InvalidArgument(name_, ": can't decompress it: ", message);
  return static_cast<size_t>(bytes);
}

}  // namespace weft
