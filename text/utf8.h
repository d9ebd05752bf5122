// These functions read UTF-8 one code point at a time, and check that texts are UTF-8.
//
//   for (size_t i = 0; i < text.size();) {
//     const Utf8Character c = CharacterAt(text, i);
//     if (c.bytes == 0) ...                            // text is not UTF-8 at byte i
//     i += c.bytes;
//   }
#ifndef WEFT_TEXT_UTF8_H_
#define WEFT_TEXT_UTF8_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace weft {

inline constexpr int32_t kCodePoints = 0x110000;

struct Utf8Character {
  int32_t code_point = -1;
  size_t bytes = 0;  // 0: not UTF-8
};

// Returns the character that begins at byte `offset`.
Utf8Character CharacterAt(absl::string_view text, size_t offset);
std::string ToUtf8(int32_t code_point);
inline bool IsContinuation(char byte) { return (byte & 0xC0) == 0x80; }  // no character begins with such a byte
// Returns the number of characters: of bytes that are no continuation.
size_t CountCharacters(absl::string_view text);
// Returns where the character of byte `at` begins, so that a cut there is between two characters. `at` may be the end.
size_t CharacterBegin(absl::string_view text, size_t at);
// Returns InvalidArgument "not UTF-8 at byte 12 (0xE9)" for the first byte that is not UTF-8.
absl::Status CheckUtf8(absl::string_view text);
// Returns `text` with U+FFFD in place of bytes that are not UTF-8: one for the bytes that begin a character and are not
// followed by its rest, and one for each other byte, as Unicode recommends and Python's bytes.decode(errors="replace")
// does. If `rest` is not null, it gets an incomplete character at the end, which is then not replaced.
std::string ReplaceInvalidUtf8(absl::string_view text, std::string* rest = nullptr);
// Returns "U+00E9 'é'" for an error message. Combining marks and code points without a visible character, except ' ',
// appear as numbers only.
std::string Describe(int32_t code_point);

}  // namespace weft

#endif  // WEFT_TEXT_UTF8_H_
