// The files in which byte-level BPE is published.
#ifndef WEFT_TEXT_BPE_FILES_H_
#define WEFT_TEXT_BPE_FILES_H_

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "weft/text/byte_level_bpe.h"

namespace weft {

// GPT-2's encoder.json, elsewhere vocab.json: {"Ġthe": 262}.
absl::StatusOr<Vocabulary> ReadBpeVocabulary(absl::string_view json);
// GPT-2's vocab.bpe, elsewhere merges.txt: "#version: 0.2", then a line "Ġ t" for each merge.
absl::StatusOr<std::vector<TokenPair>> ReadBpeMerges(absl::string_view text);
// The two together; special is what has a usual name and is no merge.
BpeModel Gpt2Model(Vocabulary vocabulary, std::vector<TokenPair> merges);

// The parts that tokenizer.json has in common with these files.
using TokenIds = std::vector<std::pair<std::string, int64_t>>;
absl::StatusOr<TokenIds> ReadTokenIds(const nlohmann::json& object);      // as they are written
absl::StatusOr<TokenPair> ReadMerge(absl::string_view left_space_right);  // as bytes
absl::StatusOr<TokenPair> ReadMerge(absl::string_view left, absl::string_view right);

}  // namespace weft

#endif  // WEFT_TEXT_BPE_FILES_H_
