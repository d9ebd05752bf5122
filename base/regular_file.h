// A MappedFile shows a regular file's bytes in memory without copying them, and a RandomAccessFile reads it at any
// positions, a little at a time.
//
//   WEFT_ASSIGN_OR_RETURN(const MappedFile weights, MappedFile::Open("model.safetensors"));
//   weights.bytes()
//   WEFT_ASSIGN_OR_RETURN(const RandomAccessFile tokens, RandomAccessFile::Open("tokens-00000.bin"));
//   WEFT_RETURN_IF_ERROR(tokens.Read(begin, size, bytes));
//
// Open returns NotFound if the file is missing, and InvalidArgument if it is a folder or not a regular file. Otherwise
// its error is the reason that the system gives.
#ifndef WEFT_BASE_REGULAR_FILE_H_
#define WEFT_BASE_REGULAR_FILE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "weft/base/file.h"

namespace weft {

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

#endif  // WEFT_BASE_REGULAR_FILE_H_
