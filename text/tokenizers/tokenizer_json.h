// These functions read tokenizer.json of Hugging Face's tokenizers, and tokenizer_config.json and
// special_tokens_map.json beside it. They write tokenizer.json for byte-level BPE, WordPiece and characters.
//
// `truncation` is ignored, as transformers ignores it unless a caller asks to truncate; `padding` only names the
// padding token. Any other setting that would change ids or texts, and that Weft doesn't support, is an error. So a
// tokenizer gives the same ids and texts as its authors', or doesn't load.
#ifndef WEFT_TEXT_TOKENIZERS_TOKENIZER_JSON_H_
#define WEFT_TEXT_TOKENIZERS_TOKENIZER_JSON_H_

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weft/text/tokenizers/bpe.h"
#include "weft/text/tokenizers/pipeline_steps.h"
#include "weft/text/tokenizers/tokenizer.h"
#include "weft/text/tokenizers/vocabulary.h"
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

// The functions below read tokens, merges and vocabularies as tokenizer.json, vocab.json and merges.txt have them.

// Converts a token from the byte alphabet (vocabulary.h) to bytes. Errors name the token.
absl::StatusOr<std::string> ReadToken(absl::string_view token);
// Read a merge. If `as_bytes` is set, both tokens are converted as ReadToken does.
absl::StatusOr<TokenPair> ReadMerge(absl::string_view left_space_right, bool as_bytes = true);
absl::StatusOr<TokenPair> ReadMerge(absl::string_view left, absl::string_view right, bool as_bytes = true);
// Keeps the file's spelling of tokens.
absl::StatusOr<VocabularyEntries> ReadVocabularyEntries(const nlohmann::json& object);
// Reads a file such as encoder.json (GPT-2) or vocab.json (Hugging Face), {"Ġthe": 262}. Converts its tokens to bytes
// if `as_bytes` is set. Errors name the file.
absl::StatusOr<Vocabulary> ReadVocabularyFile(const std::string& path, bool as_bytes);
// Reads the contents of a vocab.txt, which has one token a line. As in transformers, the last of equal lines gives the
// token's id, and a blank line is an id without a token; `note` then gets a sentence about the first such line. Blank
// lines at the end count for nothing.
absl::StatusOr<Vocabulary> ReadVocabularyText(absl::string_view text, std::string* note = nullptr);

// Returns the contents of a tokenizer.json for `model`, which Hugging Face's tokenizers can read too. A BpeModel must
// begin with bytes, and have merges and GPT-2's words.
std::string WriteTokenizerJson(const BpeModel& model);
std::string WriteTokenizerJson(const WordPieceModel& model);
// Converts a tokenizer.json of Weft's kind "character" (character_tokenizer.h) to Hugging Face's WordLevel. Returns
// nullopt if `contents` are of another kind. Tokens for `special` get the first ids; with "<unk>", an unknown character
// is this token.
std::optional<std::string> PublishedCharacters(absl::string_view contents,
                                               const std::vector<std::string>& special = {});
// These return sections of the file.
nlohmann::ordered_json AddedTokensJson(absl::Span<const AddedToken> tokens);
nlohmann::ordered_json BertNormalizerJson(const BertNormalizer& normalizer);
nlohmann::ordered_json ByteLevelJson(bool prefix_space);
// `text`: returns the text of a token. Without a `pair`, the second text follows the first.
nlohmann::ordered_json TemplateJson(const WrapFormat& single, const WrapFormat& pair,
                                    absl::FunctionRef<const std::string&(int32_t id)> text);

}  // namespace weft

#endif  // WEFT_TEXT_TOKENIZERS_TOKENIZER_JSON_H_
