// These functions tell how much memory this process has, and how much it can still allocate.
//
//   if (plan.memory.allocated() > AvailableMemory()) ...
#ifndef WEFT_LAB_ESTIMATE_AVAILABLE_MEMORY_H_
#define WEFT_LAB_ESTIMATE_AVAILABLE_MEMORY_H_

#include <cstdint>
#include <string>

namespace weft {

// Returns the bytes that the system has available, or that the process's control group may still use, whichever is
// less. Returns 0 if the system does not tell. `root`: the folder that holds proc/ and sys/, for tests.
uint64_t AvailableMemory(const std::string& root = "");

// The resident memory of this process in bytes: now, and its maximum so far. Both are 0 if the system does not tell.
struct ResidentMemory {
  uint64_t now = 0, highest = 0;
};
ResidentMemory ReadResidentMemory();

}  // namespace weft

#endif  // WEFT_LAB_ESTIMATE_AVAILABLE_MEMORY_H_
