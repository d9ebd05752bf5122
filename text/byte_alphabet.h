// The byte alphabet has a printable character for each byte, for files of byte-level BPE: " the" is written "Ġthe".
#ifndef WEFT_TEXT_BYTE_ALPHABET_H_
#define WEFT_TEXT_BYTE_ALPHABET_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weft {

// Writes each byte as one character. Printable bytes of Latin-1 are unchanged; the other 68 become U+0100, U+0101, ...
// in order (bytes_to_unicode in GPT-2's encoder.py).
std::string ToByteAlphabet(absl::string_view bytes);
// Converts such characters to bytes. Returns InvalidArgument, with the character, if a character stands for no byte.
absl::StatusOr<std::string> FromByteAlphabet(absl::string_view text);

}  // namespace weft

#endif  // WEFT_TEXT_BYTE_ALPHABET_H_
