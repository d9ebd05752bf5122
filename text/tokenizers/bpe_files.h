// These functions read entries of vocabularies and lists of merges, as tokenizer.json, vocab.json and merges.txt have
// them. ReadVocabularyEntries keeps the file's spelling of tokens, "Ġthe". TokenBytes and ReadMerge convert to bytes,
// " the".
#ifndef WEFT_TEXT_TOKENIZERS_BPE_FILES_H_
#define WEFT_TEXT_TOKENIZERS_BPE_FILES_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "weft/text/tokenizers/byte_level_bpe.h"

namespace weft {

absl::StatusOr<VocabularyEntries> ReadVocabularyEntries(const nlohmann::json& object);
// Reads a file such as encoder.json (GPT-2) or vocab.json (Hugging Face), {"Ġthe": 262}. Converts its tokens to bytes
// if `as_bytes` is set. Errors name the file.
absl::StatusOr<Vocabulary> ReadVocabularyFile(const std::string& path, bool as_bytes);
absl::StatusOr<std::string> TokenBytes(absl::string_view token);  // the bytes of a token as a file spells it
absl::StatusOr<TokenPair> ReadMerge(absl::string_view left_space_right);
absl::StatusOr<TokenPair> ReadMerge(absl::string_view left, absl::string_view right);

}  // namespace weft

#endif  // WEFT_TEXT_TOKENIZERS_BPE_FILES_H_
