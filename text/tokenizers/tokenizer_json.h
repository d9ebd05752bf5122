// These functions read tokenizer.json of Hugging Face's tokenizers, and tokenizer_config.json and
// special_tokens_map.json beside it. They write tokenizer.json for byte-level BPE and WordPiece.
//
// `truncation` is ignored, as transformers ignores it unless a caller asks to truncate; `padding` only names the
// padding token. Any other setting that would change ids or texts, and that Weft doesn't support, is an error. So a
// tokenizer gives the same ids and texts as its authors', or doesn't load.
#ifndef WEFT_TEXT_TOKENIZERS_TOKENIZER_JSON_H_
#define WEFT_TEXT_TOKENIZERS_TOKENIZER_JSON_H_

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>

#include "weft/text/tokenizers/byte_level_bpe.h"
#include "weft/text/tokenizers/tokenizer.h"
#include "weft/text/tokenizers/word_piece.h"

namespace weft {

// Reads a tokenizer.json. Returns InvalidArgument, with the location in the file ("model.merges: entry 7: ..."), if the
// file is malformed or unsupported.
absl::StatusOr<std::unique_ptr<Tokenizer>> ReadTokenizerJson(const nlohmann::json& json);

// The keys with which tokenizer_config.json names the tokens of roles.
inline constexpr std::pair<const char*, TokenRole> kTokenRoles[] = {
    {"bos_token", &SpecialTokens::begin},    {"eos_token", &SpecialTokens::end},
    {"pad_token", &SpecialTokens::padding},  {"unk_token", &SpecialTokens::unknown},
    {"mask_token", &SpecialTokens::mask},    {"cls_token", &SpecialTokens::classification},
    {"sep_token", &SpecialTokens::separator}};

// Reads a token's text and flags. A text alone, as tokenizer_config.json has it, is a special token. Its id is -1 if
// `entry` has none.
absl::StatusOr<AddedToken> ReadAddedToken(const nlohmann::json& entry);
// Reads the settings in a tokenizer_config.json that every kind of tokenizer has. As in transformers,
// `special_tokens_map`, the contents of special_tokens_map.json, goes before the roles of `json` unless `json` has
// "added_tokens_decoder".
absl::StatusOr<TokenizerSettings> ReadTokenizerSettings(const nlohmann::json& json,
                                                        const nlohmann::json& special_tokens_map);
// Returns the model of a vocab.txt with the settings of a tokenizer_config.json, such as "do_lower_case".
absl::StatusOr<WordPieceModel> ReadBertModel(Vocabulary vocabulary, const nlohmann::json& json);

// Returns the contents of a tokenizer.json for `model`, which Hugging Face's tokenizers can read too.
std::string WriteTokenizerJson(const BpeModel& model);
std::string WriteTokenizerJson(const WordPieceModel& model);

}  // namespace weft

#endif  // WEFT_TEXT_TOKENIZERS_TOKENIZER_JSON_H_
