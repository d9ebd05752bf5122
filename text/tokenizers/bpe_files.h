// These functions read what files of byte-level BPE spell: tokens, merges and vocabularies, as tokenizer.json,
// vocab.json and merges.txt have them. The files spell bytes in the byte alphabet, which has a printable character for
// each byte: " the" is written "Ġthe".
#ifndef WEFT_TEXT_TOKENIZERS_BPE_FILES_H_
#define WEFT_TEXT_TOKENIZERS_BPE_FILES_H_

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "weft/text/tokenizers/vocabulary.h"

namespace weft {

// Returns one UTF-8 character for each byte (bytes_to_unicode in GPT-2's encoder.py). A visible Latin-1 character keeps
// its code point. The other 68 bytes, including ' ', become U+0100, U+0101, ... in order.
std::string ToByteAlphabet(absl::string_view bytes);
// Converts the characters of ToByteAlphabet back to bytes. Returns InvalidArgument if `text` is not UTF-8, or, with the
// character, if a character stands for no byte.
absl::StatusOr<std::string> FromByteAlphabet(absl::string_view text);

using TokenPair = std::pair<std::string, std::string>;
// These convert the tokens of a merge to bytes.
absl::StatusOr<TokenPair> ReadMerge(absl::string_view left_space_right);
absl::StatusOr<TokenPair> ReadMerge(absl::string_view left, absl::string_view right);

// Keeps the file's spelling of tokens.
absl::StatusOr<VocabularyEntries> ReadVocabularyEntries(const nlohmann::json& object);
// Converts a token to bytes. Errors name the token.
absl::StatusOr<std::string> ReadToken(absl::string_view token);
// Reads a file such as encoder.json (GPT-2) or vocab.json (Hugging Face), {"Ġthe": 262}. Converts its tokens to bytes
// if `as_bytes` is set. Errors name the file.
absl::StatusOr<Vocabulary> ReadVocabularyFile(const std::string& path, bool as_bytes);

}  // namespace weft

#endif  // WEFT_TEXT_TOKENIZERS_BPE_FILES_H_
