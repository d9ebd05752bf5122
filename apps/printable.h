// This function makes names and labels from files safe to print on a terminal.
#ifndef WEFT_APPS_PRINTABLE_H_
#define WEFT_APPS_PRINTABLE_H_

#include <string>

#include "absl/strings/string_view.h"

namespace weft {

// Returns `text` with its control characters escaped, as in "\x1b", because a terminal obeys control characters, and a
// tab or a new line would break a line of output. Control characters of the set C1 take two bytes in UTF-8. Those in
// `kept` stay.
std::string Printable(absl::string_view text, absl::string_view kept = "");

}  // namespace weft

#endif  // WEFT_APPS_PRINTABLE_H_
