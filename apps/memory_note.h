// MemoryNote warns of a model that is larger than the memory.
//
//   std::fputs(MemoryNote("huge-model", UsableBytes()).c_str(), stderr);
#ifndef WEFT_APPS_MEMORY_NOTE_H_
#define WEFT_APPS_MEMORY_NOTE_H_

#include <cstdint>
#include <string>

namespace weft {

// Returns "" if the file of the weights of `model`, a file or folder, has at most `memory` bytes, or if there is none.
// Otherwise returns a line which says that the model will be slow, and why.
std::string MemoryNote(const std::string& model, int64_t memory);

}  // namespace weft

#endif  // WEFT_APPS_MEMORY_NOTE_H_
