// tokenizer.json as Hugging Face's tokenizers write it, of two kinds: byte-level BPE and WordPiece.
//
// `truncation` and `padding` are left to the caller. What would change the ids and isn't known here is an error that
// names it, so that a tokenizer either gives the ids that its authors meant or none.
#ifndef WEFT_TEXT_TOKENIZER_JSON_H_
#define WEFT_TEXT_TOKENIZER_JSON_H_

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "weft/text/bert_words.h"
#include "weft/text/byte_level_bpe.h"
#include "weft/text/tokenizer.h"

namespace weft {

// InvalidArgument "model.merges[7]: ..." and the like.
absl::StatusOr<std::unique_ptr<Tokenizer>> ReadTokenizerJson(const nlohmann::json& json);

// What tokenizer_config.json, in older folders beside a vocab.txt, says of BERT's words: "do_lower_case" and the like.
absl::StatusOr<BertNormalizer> ReadBertSettings(const nlohmann::json& json);

// The tokenizer as such a file, which other programs can read as well.
std::string WriteTokenizerJson(const BpeModel& model);

}  // namespace weft

#endif  // WEFT_TEXT_TOKENIZER_JSON_H_
