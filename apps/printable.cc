#include "weft/apps/printable.h"

#include <cstddef>
#include <cstdint>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"

namespace weft {

std::string Printable(absl::string_view text, absl::string_view kept) {
  std::string printable;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    const bool begins_c1 = byte == 0xC2 && i + 1 < text.size() && static_cast<uint8_t>(text[i + 1]) < 0xA0;
    const bool ends_c1 = byte >= 0x80 && byte < 0xA0 && i > 0 && static_cast<uint8_t>(text[i - 1]) == 0xC2;
    const bool control = byte < 0x20 || byte == 0x7F || begins_c1 || ends_c1;
    if (control && !absl::StrContains(kept, text[i])) {
      absl::StrAppendFormat(&printable, "\\x%02x", byte);
    } else {
      printable += text[i];
    }
  }
  return printable;
}

}  // namespace weft
