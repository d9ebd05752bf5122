#include "weft/core/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "weft/core/status.h"

namespace weft {
namespace {

// What the system said of the last call: "cannot read data.txt: Permission denied".
absl::Status SystemError(absl::string_view what, const std::string& path) {
  const int error = errno;
  return absl::ErrnoToStatus(error, absl::StrCat("cannot ", what, " ", path));
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  bool Close() { return close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

absl::Status WriteAll(int fd, absl::string_view part, const std::string& path) {
  while (!part.empty()) {
    const ssize_t written = write(fd, part.data(), part.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return SystemError("write", path);
    part.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

absl::Status WriteAndSync(const std::string& path, absl::Span<const absl::string_view> parts) {
  Descriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (file.get() < 0) return SystemError("create", path);
  for (absl::string_view part : parts) WEFT_RETURN_IF_ERROR(WriteAll(file.get(), part, path));
  if (fsync(file.get()) != 0 || !file.Close()) return SystemError("write", path);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return SystemError("open", path);
  struct stat about;
  if (fstat(file.get(), &about) != 0) return SystemError("read", path);
  if (S_ISDIR(about.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat("cannot read ", path, ": it is a folder, not a file"));
  }
  constexpr size_t kLeast = 4096;  // for pipes and the like, which have no size
  std::string bytes(static_cast<size_t>(about.st_size) + kLeast, '\0');
  size_t size = 0;
  while (true) {
    if (size == bytes.size()) bytes.resize(2 * size);
    const ssize_t got = read(file.get(), bytes.data() + size, bytes.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return SystemError("read", path);
    if (got == 0) break;
    size += static_cast<size_t>(got);
  }
  bytes.resize(size);
  return bytes;
}

absl::Status WriteFile(const std::string& path, absl::Span<const absl::string_view> parts) {
  const std::string temporary = absl::StrCat(path, ".", getpid(), ".tmp");
  absl::Status status = WriteAndSync(temporary, parts);
  if (status.ok() && rename(temporary.c_str(), path.c_str()) != 0) status = SystemError("write", path);
  if (!status.ok()) {
    unlink(temporary.c_str());
    return status;
  }
  const size_t slash = path.rfind('/');
  return SyncFolder(slash == std::string::npos ? "." : path.substr(0, std::max<size_t>(slash, 1)));
}

absl::Status SyncFolder(const std::string& path) {
  const Descriptor folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0) return SystemError("open", path);
  // Some file systems can't sync a folder and say EINVAL.
  if (fsync(folder.get()) != 0 && errno != EINVAL) return SystemError("sync", path);
  return absl::OkStatus();
}

}  // namespace weft
