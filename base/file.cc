#include "weft/base/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "weft/base/status.h"

namespace weft {
namespace {

absl::Status LastError(absl::string_view what, const std::string& path) { return SystemStatus(what, path, errno); }

Descriptor OpenFolder(const std::string& path) {
  return Descriptor(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

std::string TemporaryFor(const std::string& path) { return absl::StrCat(path, ".", getpid(), kTemporarySuffix); }

// Creates a new file at `path`. If `path` exists, as a link or as a file that an earlier process with the same id left,
// removes it first. So nothing is written to a file that existed before.
Descriptor Create(const std::string& path) {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
  Descriptor file(open(path.c_str(), kFlags, 0666));
  if (file.get() >= 0 || errno != EEXIST || unlink(path.c_str()) != 0) return file;
  return Descriptor(open(path.c_str(), kFlags, 0666));
}

// Opens a regular file for reading, and sets `*size` to its bytes.
absl::StatusOr<Descriptor> OpenRegularFile(const std::string& path, int64_t* size) {
  struct stat about;  // opening a pipe may wait for its writer, and closing it may end the writer
  if (stat(path.c_str(), &about) != 0) return LastError("open", path);
  if (S_ISDIR(about.st_mode)) return InvalidArgument("cannot read ", path, ": it is a folder, not a file");
  if (!S_ISREG(about.st_mode)) return InvalidArgument("cannot read ", path, ": it is not a regular file");
  Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0 || fstat(file.get(), &about) != 0) return LastError("open", path);
  // Checked again, because another file may have taken the path since.
  if (!S_ISREG(about.st_mode)) return InvalidArgument("cannot read ", path, ": it is not a regular file");
  *size = about.st_size;
  return file;
}

size_t PhysicalMemory() {
  return static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

size_t read_limit = std::min(size_t{4} << 30, PhysicalMemory() / 4);

}  // namespace

Descriptor::~Descriptor() { Close(); }

absl::Status Descriptor::Write(absl::string_view bytes, const std::string& path) const {
  while (!bytes.empty()) {
    const ssize_t written = write(fd_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return LastError("write", path);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

bool Descriptor::Close() { return fd_ < 0 || close(std::exchange(fd_, -1)) == 0; }

absl::Status SystemStatus(absl::string_view what, const std::string& path, int error) {
  const absl::Status status = absl::ErrnoToStatus(error, absl::StrCat("cannot ", what, " ", path));
  return error == ELOOP ? absl::FailedPreconditionError(status.message()) : status;  // Abseil has no code for it
}

size_t ReadLimit() { return read_limit; }

void SetReadLimit(size_t bytes) { read_limit = bytes; }

absl::Status BeyondReadLimit(const std::string& path) {
  return absl::ResourceExhaustedError(
      absl::StrCat(path, ": it has more than ", ReadLimit(),
                   " bytes, which is the limit max-bytes for files that do not tell their size"));
}

bool Exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

bool IsFolder(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

absl::StatusOr<std::vector<std::string>> NamesIn(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator i(folder, error), end;
  if (error == std::errc::no_such_file_or_directory) return names;
  for (; !error && i != end; i.increment(error)) names.push_back(i->path().filename().string());
  if (error) return SystemStatus("read", folder, error.value());
  return names;
}

absl::StatusOr<std::string> ReadFile(const std::string& path, size_t max_bytes) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return LastError("open", path);
  struct stat about;
  if (fstat(file.get(), &about) != 0) return LastError("read", path);
  if (S_ISDIR(about.st_mode)) {
    return InvalidArgument("cannot read ", path, ": it is a folder, not a file");
  }
  const auto told = static_cast<size_t>(about.st_size);  // 0 for pipes, devices and files of /proc
  const auto beyond_maximum = [&] {
    return absl::ResourceExhaustedError(
        absl::StrCat(path, ": it has more than ", max_bytes, " bytes, the maximum for its kind of file"));
  };
  if (told > max_bytes) return beyond_maximum();
  if (told > PhysicalMemory()) {
    return absl::ResourceExhaustedError(
        absl::StrCat(path, ": it has ", told, " bytes, more than the machine's memory of ", PhysicalMemory()));
  }
  // A file that does not tell its size is read in parts. So no growing text is copied, and memory holds a byte once.
  constexpr size_t kMinPart = 4096, kMaxPart = size_t{16} << 20;  // bytes
  const size_t limit = std::max(told, ReadLimit());
  std::deque<std::string> parts = {std::string(told + kMinPart, '\0')};
  size_t size = 0, filled = 0;  // bytes of all parts, and of the last one
  while (true) {
    if (size > max_bytes) return beyond_maximum();
    if (size > limit) return BeyondReadLimit(path);
    if (filled == parts.back().size()) {
      parts.emplace_back(std::min(size, kMaxPart), '\0');
      filled = 0;
    }
    const ssize_t got = read(file.get(), parts.back().data() + filled, parts.back().size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return LastError("read", path);
    if (got == 0) break;
    size += static_cast<size_t>(got);
    filled += static_cast<size_t>(got);
  }
  parts.back().resize(filled);
  if (parts.size() == 1) return std::move(parts.front());
  std::string bytes;
  bytes.reserve(size);
  for (; !parts.empty(); parts.pop_front()) bytes += parts.front();
  return bytes;
}

absl::Status WriteFile(const std::string& path, absl::Span<const absl::string_view> parts, IfThere if_there) {
  WEFT_ASSIGN_OR_RETURN(NewFile file, NewFile::Create(path));
  for (const absl::string_view part : parts) WEFT_RETURN_IF_ERROR(file.Append(part));
  return file.Commit(if_there);
}

absl::StatusOr<NewFile> NewFile::Create(const std::string& path) {
  const std::string temporary = TemporaryFor(path);
  Descriptor file = weft::Create(temporary);
  if (file.get() < 0) return LastError("create", temporary);
  return NewFile(path, temporary, std::move(file));
}

NewFile::~NewFile() {
  if (file_.get() >= 0) unlink(temporary_.c_str());
}

absl::Status NewFile::Append(absl::string_view bytes) { return file_.Write(bytes, temporary_); }

absl::Status NewFile::Replace(size_t offset, absl::string_view bytes) {
  if (lseek(file_.get(), static_cast<off_t>(offset), SEEK_SET) < 0) return LastError("write", temporary_);
  WEFT_RETURN_IF_ERROR(file_.Write(bytes, temporary_));
  return lseek(file_.get(), 0, SEEK_END) < 0 ? LastError("write", temporary_) : absl::OkStatus();
}

absl::Status NewFile::Commit(IfThere if_there) {
  const bool replace = if_there == IfThere::kReplace;
  absl::Status status;
  if (fsync(file_.get()) != 0 || !file_.Close()) status = LastError("write", temporary_);
  if (status.ok() && (replace ? rename : link)(temporary_.c_str(), path_.c_str()) != 0) {
    status = LastError("write", path_);
  }
  if (!replace || !status.ok()) unlink(temporary_.c_str());
  WEFT_RETURN_IF_ERROR(status);
  return SyncParent(path_);
}

absl::Status CheckWritable(const std::string& path) {
  const std::string temporary = TemporaryFor(path);
  if (Create(temporary).get() < 0) return LastError("write", path);
  unlink(temporary.c_str());
  return absl::OkStatus();
}

absl::Status SyncFolder(const std::string& path) {
  const Descriptor folder = OpenFolder(path);
  if (folder.get() < 0) return LastError("open", path);
  // EINVAL: the file system can't sync folders.
  if (fsync(folder.get()) != 0 && errno != EINVAL) return LastError("sync", path);
  return absl::OkStatus();
}

absl::Status SyncParent(const std::string& path) {
  const size_t slash = path.rfind('/');
  return SyncFolder(slash == std::string::npos ? "." : path.substr(0, std::max<size_t>(slash, 1)));
}

absl::StatusOr<Descriptor> LockFolder(const std::string& path) {
  Descriptor folder = OpenFolder(path);
  if (folder.get() < 0) return LastError("open", path);
  for (int tries = 1;; ++tries) {  // IsLocked of another process holds a lock for a moment
    if (flock(folder.get(), LOCK_EX | LOCK_NB) == 0) return folder;
    if (errno != EWOULDBLOCK) return LastError("lock", path);
    if (tries == 10) return absl::FailedPreconditionError(absl::StrCat(path, " is in use by another process"));
    usleep(10'000);
  }
}

bool IsLocked(const std::string& path) {
  const Descriptor folder = OpenFolder(path);
  return folder.get() >= 0 && flock(folder.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

absl::StatusOr<MappedFile> MappedFile::Open(const std::string& path) {
  int64_t bytes = 0;
  WEFT_ASSIGN_OR_RETURN(const Descriptor file, OpenRegularFile(path, &bytes));
  const size_t size = static_cast<size_t>(bytes);
  if (size == 0) return MappedFile();  // nothing can be mapped
  void* const data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, file.get(), 0);
  if (data == MAP_FAILED) return LastError("map", path);
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
    if (bytes < 0) return LastError("read", path_);
    if (bytes == 0) {
      return absl::DataLossError(absl::StrCat(path_, " ends at byte ", at, "; it had ", size_, " when it was opened"));
    }
    done += static_cast<size_t>(bytes);
  }
  return absl::OkStatus();
}

}  // namespace weft
