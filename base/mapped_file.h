// A MappedFile shows a file's bytes in memory without copying them. Processes that map the same file share its pages.
//
//   WEFT_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open("model.safetensors"));
//   file.bytes()
//
// The bytes may be written, which changes neither the file nor other mappings: a page is copied when it is first
// written. While a file is mapped, no program may shorten it; WriteFile replaces files, which is safe.
#ifndef WEFT_BASE_MAPPED_FILE_H_
#define WEFT_BASE_MAPPED_FILE_H_

#include <cstddef>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weft {

class MappedFile {
 public:
  // Errors: NotFound if the file is missing, InvalidArgument if it is a folder or not a regular file, otherwise the
  // reason that the system gives.
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

}  // namespace weft

#endif  // WEFT_BASE_MAPPED_FILE_H_
