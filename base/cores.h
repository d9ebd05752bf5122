// Cores returns the number of cores that this process may use.
#ifndef WEFT_BASE_CORES_H_
#define WEFT_BASE_CORES_H_

#include <sched.h>

#include <algorithm>
#include <thread>

namespace weft {

// Returns the number of threads of this process that can run at once, at least 1. This is the number of cores in the
// CPU affinity mask of the thread that first calls Cores.
inline int Cores() {
  static const int cores = [] {
    cpu_set_t set;
    const int allowed = sched_getaffinity(0, sizeof(set), &set) == 0
                            ? CPU_COUNT(&set)
                            : static_cast<int>(std::thread::hardware_concurrency());
    return std::max(1, allowed);
  }();
  return cores;
}

}  // namespace weft

#endif  // WEFT_BASE_CORES_H_
