// These functions read the two files in which byte-level BPE is published: a vocabulary and a list of merges.
#ifndef WEFT_TEXT_BPE_FILES_H_
#define WEFT_TEXT_BPE_FILES_H_

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "weft/text/byte_level_bpe.h"

namespace weft {

// Reads the contents of encoder.json (GPT-2) or vocab.json (Hugging Face): {"Ġthe": 262}.
absl::StatusOr<Vocabulary> ReadBpeVocabulary(absl::string_view json);
// Reads the contents of vocab.bpe (GPT-2) or merges.txt (Hugging Face): one merge a line, such as "Ġ t". The first line
// may be "#version: 0.2".
absl::StatusOr<std::vector<TokenPair>> ReadBpeMerges(absl::string_view text);
// Returns a model of `vocabulary` and `merges`. A token is special if UsualSpecialTokens (tokenizer.h) returns it and
// no merge produces it.
BpeModel Gpt2Model(Vocabulary vocabulary, std::vector<TokenPair> merges);

// The functions below also read parts of tokenizer.json. ReadVocabularyEntries keeps the file's spelling of tokens,
// "Ġthe". TokenBytes and ReadMerge convert to bytes, " the".
absl::StatusOr<VocabularyEntries> ReadVocabularyEntries(const nlohmann::json& object);
absl::StatusOr<std::string> TokenBytes(absl::string_view token);  // the bytes of a token as a file spells it
absl::StatusOr<TokenPair> ReadMerge(absl::string_view left_space_right);
absl::StatusOr<TokenPair> ReadMerge(absl::string_view left, absl::string_view right);

}  // namespace weft

#endif  // WEFT_TEXT_BPE_FILES_H_
