// Whole files, read and written with errors that name them.
#ifndef WEFT_CORE_FILE_H_
#define WEFT_CORE_FILE_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace weft {

// The file's bytes. NotFound if it is missing; InvalidArgument if it is a folder; else what the system said.
absl::StatusOr<std::string> ReadFile(const std::string& path);

// Writes `parts` one after the other to a temporary file beside `path`, syncs it and renames it: `path` is either the
// old file or the whole new one. A process that is killed meanwhile leaves a file PATH.PID.tmp. With kFail
// AlreadyExists if there is something at `path` by then, which stays as it is.
inline constexpr char kTemporarySuffix[] = ".tmp";
enum class IfThere { kReplace, kFail };
absl::Status WriteFile(const std::string& path, absl::Span<const absl::string_view> parts,
                       IfThere if_there = IfThere::kReplace);
// Whether WriteFile can make its temporary file, which is gone again: for those that want to know before long work.
absl::Status CheckWritable(const std::string& path);

// "cannot WHAT PATH: REASON", with the code that fits `error`, an errno; OK if that is 0.
absl::Status SystemStatus(absl::string_view what, const std::string& path, int error);

// Syncs a folder, so that the names in it last.
absl::Status SyncFolder(const std::string& path);

// A file descriptor, closed with the object.
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
  bool Close();  // whether the system agrees

 private:
  int fd_;
};

// Holds a folder until the descriptor or the process ends. FailedPrecondition if another process holds it.
absl::StatusOr<Descriptor> LockFolder(const std::string& path);

}  // namespace weft

#endif  // WEFT_CORE_FILE_H_
