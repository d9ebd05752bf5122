// AvailableMemory tells how much memory this process can still allocate.
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

}  // namespace weft

#endif  // WEFT_LAB_ESTIMATE_AVAILABLE_MEMORY_H_
