// These functions measure the memory of this process and of the machine.
//
//   const int64_t before = ResidentBytes();
#ifndef WEFT_CORE_RESIDENT_BYTES_H_
#define WEFT_CORE_RESIDENT_BYTES_H_

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>

namespace weft {

// Returns the number of bytes of this process that are in physical memory, or 0 if the system does not tell.
inline int64_t ResidentBytes() {
  int64_t total = 0, resident = 0;  // pages
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

// Returns the number of bytes of physical memory that this process may use: those of the machine, or of its memory
// cgroup if that allows less.
inline int64_t UsableBytes() {
  int64_t bytes = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  for (const char* path : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    int64_t limit = 0;
    if (std::ifstream(path) >> limit && limit > 0) bytes = std::min(bytes, limit);
  }
  return bytes;
}

}  // namespace weft

#endif  // WEFT_CORE_RESIDENT_BYTES_H_
