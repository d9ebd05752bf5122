// ResidentBytes measures the memory of this process.
//
//   const int64_t before = ResidentBytes();
#ifndef WEFT_BASE_RESIDENT_BYTES_H_
#define WEFT_BASE_RESIDENT_BYTES_H_

#include <unistd.h>

#include <cstdint>
#include <fstream>

namespace weft {

// Returns the number of bytes of this process that are in physical memory, or 0 if the system does not tell.
inline int64_t ResidentBytes() {
  int64_t total = 0, resident = 0;  // pages
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

}  // namespace weft

#endif  // WEFT_BASE_RESIDENT_BYTES_H_
