// MemoryNote warns of a model that is larger than the memory.
//
//   PrintMemoryNote(flags.model);   // before the model is opened
#ifndef WEFT_APPS_MEMORY_NOTE_H_
#define WEFT_APPS_MEMORY_NOTE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace weft {

// Returns "" if the file of the weights of `model`, a file, a folder or RUN@WEIGHTS, has at most `memory` bytes, or if
// there is none. Otherwise returns a line which says that using the model will be slow or fail.
std::string MemoryNote(const std::string& model, uint64_t memory);
// Prints the note for the memory that is available now on stderr.
void PrintMemoryNote(const std::string& model);
// Prints each text as a note on stderr.
void PrintNotes(const std::vector<std::string>& notes);

}  // namespace weft

#endif  // WEFT_APPS_MEMORY_NOTE_H_
