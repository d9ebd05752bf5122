// These functions read and write tokenizer.json of Hugging Face's tokenizers, for byte-level BPE and WordPiece.
//
// `truncation` and `padding` are ignored, because the caller handles both. Any other setting that would change the ids
// and that Weft doesn't support is an error. So a tokenizer gives the same ids as its authors', or doesn't load.
#ifndef WEFT_TEXT_TOKENIZER_JSON_H_
#define WEFT_TEXT_TOKENIZER_JSON_H_

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "weft/text/bert_words.h"
#include "weft/text/byte_level_bpe.h"
#include "weft/text/tokenizer.h"
#include "weft/text/word_piece.h"

namespace weft {

// Reads a tokenizer.json. Returns InvalidArgument, with the location in the file ("model.merges: entry 7: ..."), if the
// file is malformed or unsupported.
absl::StatusOr<std::unique_ptr<Tokenizer>> ReadTokenizerJson(const nlohmann::json& json);

// Reads BERT's normalization settings, such as "do_lower_case", from the tokenizer_config.json beside a vocab.txt.
absl::StatusOr<BertNormalizer> ReadBertSettings(const nlohmann::json& json);

// Returns the contents of a tokenizer.json for `model`, which Hugging Face's tokenizers can read too.
std::string WriteTokenizerJson(const BpeModel& model);
std::string WriteTokenizerJson(const WordPieceModel& model);

}  // namespace weft

#endif  // WEFT_TEXT_TOKENIZER_JSON_H_
