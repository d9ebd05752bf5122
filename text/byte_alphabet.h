// How files of byte-level BPE write bytes: each as one printable character, "Ġthe" for " the".
#ifndef WEFT_TEXT_BYTE_ALPHABET_H_
#define WEFT_TEXT_BYTE_ALPHABET_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weft {

// The printable bytes of Latin-1 are themselves, the other 68 are U+0100, U+0101, ... in order (bytes_to_unicode of
// GPT-2's encoder.py).
std::string ToByteAlphabet(absl::string_view bytes);
// InvalidArgument, naming the character, if one stands for no byte.
absl::StatusOr<std::string> FromByteAlphabet(absl::string_view text);

}  // namespace weft

#endif  // WEFT_TEXT_BYTE_ALPHABET_H_
