// These functions read and write whole files, and lock folders. A MappedFile shows a regular file's bytes in memory
// without copying them, and a RandomAccessFile reads it at any positions, a little at a time. Errors name the file and
// give the reason.
//
//   WEFT_ASSIGN_OR_RETURN(const std::string text, ReadFile("config.json"));
//   WEFT_RETURN_IF_ERROR(WriteFile("copy.json", {text}));
//   WEFT_ASSIGN_OR_RETURN(const MappedFile weights, MappedFile::Open("model.safetensors"));
//   weights.bytes()
//   WEFT_ASSIGN_OR_RETURN(const RandomAccessFile tokens, RandomAccessFile::Open("tokens-00000.bin"));
//   WEFT_RETURN_IF_ERROR(tokens.Read(begin, size, bytes));
#ifndef WEFT_BASE_FILE_H_
#define WEFT_BASE_FILE_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace weft {

// Returns the file's bytes. Errors: NotFound if the file is missing, InvalidArgument if it is a folder,
// ResourceExhausted if the file has more than `max_bytes`, or more than the machine's memory, or is endless; otherwise
// the reason that the system gives.
absl::StatusOr<std::string> ReadFile(const std::string& path, size_t max_bytes = std::numeric_limits<size_t>::max());

// The read limit is a property of the process: the largest number of bytes to take from a source that does not tell its
// size. Such sources are devices, pipes, compressed files and lines of standard input. At first, the limit is 4 GiB, or
// a quarter of the machine's memory if that is less. Set it before any other thread reads.
size_t ReadLimit();
void SetReadLimit(size_t bytes);
// Returns ResourceExhausted for a source with more bytes than the read limit, which the message calls "max-bytes".
absl::Status BeyondReadLimit(const std::string& path);

// Reports whether a file or folder is at `path`. Returns false if the system cannot tell.
bool Exists(const std::string& path);
// Reports whether a folder is at `path`. Returns false if the system cannot tell.
bool IsFolder(const std::string& path);
// Returns the names in a folder, in no order, or the system's error. A missing folder has no names.
absl::StatusOr<std::vector<std::string>> NamesIn(const std::string& folder);

// The suffix of WriteFile's temporary file, PATH.PID.tmp. If a process is killed while it writes, this file remains.
inline constexpr char kTemporarySuffix[] = ".tmp";

// The behaviour of WriteFile if `path` exists.
enum class IfThere {
  kReplace,
  kFail  // AlreadyExists; the file stays as it is
};
// Writes `parts` one after the other to a temporary file beside `path`, syncs it, and gives it the name `path`. So
// `path` always names either the old file or the whole new file.
absl::Status WriteFile(const std::string& path, absl::Span<const absl::string_view> parts,
                       IfThere if_there = IfThere::kReplace);
// Checks that WriteFile can create its temporary file beside `path`. Call this before long work that ends with a write.
absl::Status CheckWritable(const std::string& path);

// Returns the error "cannot WHAT PATH: REASON" for `error`, an errno. If `error` is 0, returns OK.
absl::Status SystemStatus(absl::string_view what, const std::string& path, int error);

// Syncs a folder, so that renames in it survive a power failure. Does nothing if the file system cannot sync folders.
absl::Status SyncFolder(const std::string& path);
// Syncs the folder that contains `path`, so that its entry there survives a power failure.
absl::Status SyncParent(const std::string& path);

// A file descriptor, which is closed when the object is destroyed.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor();

  int get() const { return fd_; }
  // Writes all of `bytes`. Errors name `path`, the descriptor's file.
  absl::Status Write(absl::string_view bytes, const std::string& path) const;
  // Closes the descriptor early. Returns false if the system reports an error.
  bool Close();

 private:
  int fd_;
};

// A file that is written in several calls, with the guarantees of WriteFile: `path` names the new file only after
// Commit. Without Commit, the temporary file is removed.
class NewFile {
 public:
  static absl::StatusOr<NewFile> Create(const std::string& path);
  NewFile(NewFile&&) = default;
  NewFile& operator=(NewFile&&) = delete;
  ~NewFile();

  absl::Status Append(absl::string_view bytes);
  // Replaces bytes that were appended before, from `offset` on.
  absl::Status Replace(size_t offset, absl::string_view bytes);
  absl::Status Commit(IfThere if_there = IfThere::kReplace);

 private:
  NewFile(std::string path, std::string temporary, Descriptor file)
      : path_(std::move(path)), temporary_(std::move(temporary)), file_(std::move(file)) {}

  std::string path_, temporary_;
  Descriptor file_;  // closed after Commit
};

// Locks a folder until the returned descriptor is closed. Waits up to 0.1 s for the lock. Then returns
// FailedPrecondition if another descriptor, in this or another process, still holds it.
absl::StatusOr<Descriptor> LockFolder(const std::string& path);
// Reports whether a descriptor holds the lock of a folder. Holds a shared lock for an instant, during which LockFolder
// waits. Returns false if the folder can't be opened.
bool IsLocked(const std::string& path);

// Open of the next two classes returns NotFound if the file is missing, and InvalidArgument if it is a folder or not a
// regular file. Otherwise its error is the reason that the system gives.

// Processes that map the same file share its pages. The bytes may be written, which changes neither the file nor other
// mappings: a page is copied when it is first written. While a file is mapped, no program may shorten it; WriteFile
// replaces files, which is safe.
class MappedFile {
 public:
  static absl::StatusOr<MappedFile> Open(const std::string& path);
  MappedFile() = default;  // has no bytes
  MappedFile(MappedFile&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  MappedFile& operator=(MappedFile&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~MappedFile();

  absl::string_view bytes() const { return {reinterpret_cast<const char*>(data_), size_}; }
  std::byte* data() const { return data_; }

 private:
  MappedFile(std::byte* data, size_t size) : data_(data), size_(size) {}

  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// The file may be larger than the memory. Read copies bytes from the system's cache to the caller. So reading a large
// file does not enlarge the process, as mapping the file would. An error of the disk is a Status; with a mapped file,
// such an error ends the process.
class RandomAccessFile {
 public:
  // `in_order`: whether reads follow each other, so that the system should read ahead.
  static absl::StatusOr<RandomAccessFile> Open(const std::string& path, bool in_order = false);
  RandomAccessFile() : descriptor_(-1) {}  // has no bytes

  // Copies `size` bytes from position `begin` to `out`. Threads may call this at the same time. Returns DataLoss if the
  // file ends before, otherwise the reason that the system gives; both name the path.
  absl::Status Read(int64_t begin, size_t size, void* out) const;

  int64_t size() const { return size_; }  // in bytes, when the file was opened
  const std::string& path() const { return path_; }

 private:
  RandomAccessFile(std::string path, Descriptor descriptor, int64_t size)
      : path_(std::move(path)), descriptor_(std::move(descriptor)), size_(size) {}

  std::string path_;
  Descriptor descriptor_;
  int64_t size_ = 0;
};

}  // namespace weft

#endif  // WEFT_BASE_FILE_H_
