// A MemoryFile gives a reader of files the bytes of an input.
#ifndef WEFT_TESTS_FUZZ_FILES_MEMORY_FILE_H_
#define WEFT_TESTS_FUZZ_FILES_MEMORY_FILE_H_

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "weft/base/status.h"

namespace weft {

class MemoryFile {
 public:
  MemoryFile() : file_(memfd_create("weft", 0)), path_("/proc/self/fd/" + std::to_string(file_)) {
    WEFT_CHECK(file_ >= 0);
  }
  const std::string& path() const { return path_; }
  void Set(const uint8_t* data, size_t size) {
    WEFT_CHECK(ftruncate(file_, 0) == 0 && pwrite(file_, data, size, 0) == static_cast<ssize_t>(size));
  }

 private:
  int file_;
  std::string path_;
};

}  // namespace weft

#endif  // WEFT_TESTS_FUZZ_FILES_MEMORY_FILE_H_
