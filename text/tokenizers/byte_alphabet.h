// The byte alphabet has a printable character for each byte. The files of byte-level BPE spell their tokens in it: "
// the" is written "Ġthe".
#ifndef WEFT_TEXT_TOKENIZERS_BYTE_ALPHABET_H_
#define WEFT_TEXT_TOKENIZERS_BYTE_ALPHABET_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weft {

// Returns one UTF-8 character for each byte (bytes_to_unicode in GPT-2's encoder.py). A visible Latin-1 character keeps
// its code point. The other 68 bytes, including ' ', become U+0100, U+0101, ... in order.
std::string ToByteAlphabet(absl::string_view bytes);
// Converts the characters of ToByteAlphabet back to bytes. Returns InvalidArgument if `text` is not UTF-8, or, with the
// character, if a character stands for no byte.
absl::StatusOr<std::string> FromByteAlphabet(absl::string_view text);

}  // namespace weft

#endif  // WEFT_TEXT_TOKENIZERS_BYTE_ALPHABET_H_
