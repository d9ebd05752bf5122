// These functions tell how much memory this process has, and how much it can still allocate.
//
//   if (plan.memory.allocated() > AvailableMemory()) ...
#ifndef WEFT_LAB_ESTIMATE_AVAILABLE_MEMORY_H_
#define WEFT_LAB_ESTIMATE_AVAILABLE_MEMORY_H_

#include <cstdint>
#include <string>

namespace weft {

// Returns the bytes that the system has available, or that one of the process's control groups may still use, whichever
// is least. Returns 0 if the system does not tell. `root`: the folder that holds proc/ and sys/, for tests.
uint64_t AvailableMemory(const std::string& root = "");

// Returns the maximum of ResidentBytes (base/arena.h) so far, or 0 if the system does not tell.
uint64_t HighestResidentBytes();

}  // namespace weft

#endif  // WEFT_LAB_ESTIMATE_AVAILABLE_MEMORY_H_
