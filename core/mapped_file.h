// A MappedFile is a file's bytes as memory that the system reads from the file on demand. The process may use a file
// larger than its memory, and pages that several processes read are in memory once.
//
//   WEFT_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open("tokens-00000.bin"));
//   Use(file.bytes().substr(begin, size));
//   file.Release(begin, size);   // the pages no longer count as the process's memory
//
// The file must not become shorter while it is mapped: the system ends a process that reads beyond a file's end.
// Replacing the file by a rename does no harm, because the mapping keeps the old file.
#ifndef WEFT_CORE_MAPPED_FILE_H_
#define WEFT_CORE_MAPPED_FILE_H_

#include <cstddef>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weft {

class MappedFile {
 public:
  // Maps the file read-only, for reads at random positions. Errors: NotFound if the file is missing, InvalidArgument if
  // it is a folder, otherwise the reason that the system gives.
  static absl::StatusOr<MappedFile> Open(const std::string& path);

  MappedFile() = default;  // has no bytes
  MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  MappedFile& operator=(MappedFile&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~MappedFile();

  absl::string_view bytes() const { return bytes_; }
  // Takes the pages of `size` bytes from `begin` out of the process's resident memory, and those that the system mapped
  // around them. The bytes remain readable: the next read maps their pages again, usually from the system's cache.
  void Release(size_t begin, size_t size) const;

 private:
  explicit MappedFile(absl::string_view bytes) : bytes_(bytes) {}

  absl::string_view bytes_;
};

}  // namespace weft

#endif  // WEFT_CORE_MAPPED_FILE_H_
