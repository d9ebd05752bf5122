// A RandomAccessFile is read at any positions, a little at a time. It may be larger than the memory.
//
//   WEFT_ASSIGN_OR_RETURN(const RandomAccessFile file, RandomAccessFile::Open("tokens-00000.bin"));
//   WEFT_RETURN_IF_ERROR(file.Read(begin, size, bytes));
//
// Read copies bytes from the system's cache to the caller. So reading a large file does not enlarge the process, as
// mapping the file would. An error of the disk is a Status; with a mapped file, such an error ends the process.
#ifndef WEFT_BASE_RANDOM_ACCESS_FILE_H_
#define WEFT_BASE_RANDOM_ACCESS_FILE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "weft/base/file.h"

namespace weft {

class RandomAccessFile {
 public:
  // Errors: NotFound if the file is missing, InvalidArgument if it is a folder or not a regular file, otherwise the
  // reason that the system gives.
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

#endif  // WEFT_BASE_RANDOM_ACCESS_FILE_H_
