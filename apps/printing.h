// What commands print beside their results: names that are safe on a terminal, and notes on stderr.
//
//   PrintMemoryNote(flags.model);   // before the model is opened
#ifndef WEFT_APPS_PRINTING_H_
#define WEFT_APPS_PRINTING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace weft {

// Returns `text` with its control characters escaped, as in "\x1b", because a terminal obeys control characters, and a
// tab or a new line would break a line of output. Control characters of the set C1 take two bytes in UTF-8. Those in
// `kept` stay.
std::string Printable(absl::string_view text, absl::string_view kept = "");

// Prints each text as a note on stderr.
void PrintNotes(const std::vector<std::string>& notes);

// Returns "" if the file of the weights of `model`, a file, a folder or RUN@WEIGHTS, has at most `memory` bytes, or if
// there is none. Otherwise returns a line which says that using the model will be slow or fail.
std::string MemoryNote(const std::string& model, uint64_t memory);
// Prints the note for the memory that is available now on stderr.
void PrintMemoryNote(const std::string& model);

}  // namespace weft

#endif  // WEFT_APPS_PRINTING_H_
