// The keys and values by which the metadata of a GGUF file describes a tokenizer. The reader and the writer share them.
// No other folder includes this header.
#ifndef WEFT_TEXT_TOKENIZERS_GGUF_VOCABULARY_H_
#define WEFT_TEXT_TOKENIZERS_GGUF_VOCABULARY_H_

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "weft/text/tokenizers/tokenizer.h"

namespace weft {

inline constexpr char kLowercase[] = "normalizer.lowercase", kStripAccents[] = "normalizer.strip_accents";
inline constexpr char kGgufPrefix[] = "tokenizer.ggml.", kGgufTemplate[] = "tokenizer.chat_template", kSpace[] = "▁";

// The values of token_type. Unused tokens fill up a vocabulary.
enum GgufTokenType : int32_t {
  kNormalToken = 1,
  kUnknownToken = 2,
  kControlToken = 3,
  kUserDefinedToken = 4,
  kUnusedToken = 5,
  kByteToken = 6
};

// The keys with the numbers of the tokens of roles.
inline constexpr std::pair<const char*, TokenRole> kGgufRoles[] = {{"bos_token_id", &SpecialTokens::begin},
                                                                   {"eos_token_id", &SpecialTokens::end},
                                                                   {"unknown_token_id", &SpecialTokens::unknown},
                                                                   {"padding_token_id", &SpecialTokens::padding},
                                                                   {"seperator_token_id", &SpecialTokens::separator},
                                                                   {"cls_token_id", &SpecialTokens::classification},
                                                                   {"mask_token_id", &SpecialTokens::mask}};

// How a text is cut into words before bytes are merged, by the values of the key pre. The first name is written.
struct GgufPreTokenizer {
  std::array<absl::string_view, 6> names;
  const char* json;          // pre_tokenizer in tokenizer.json
  bool whole_words = false;  // a word that is a token is not merged, and texts have a begin token unless a key says no
  const char* normalizer = "null";  // normalizer in tokenizer.json
};
inline constexpr GgufPreTokenizer kGgufPreTokenizers[] = {
    {{"gpt-2", "phi-2", "mpt", "olmo", "jais", "trillion"},
     R"({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true})"},
    {{"smollm", "starcoder", "refact", "command-r", "codeshell", "minerva-7b"},
     R"({"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": true},
         {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true}]})"},
    {{"llama-bpe", "llama3", "llama-v3", "falcon3", "pixtral"},
     R"json({"type": "Sequence", "pretokenizers": [{"type": "Split", "behavior": "Isolated", "invert": false, "pattern": {
         "Regex": "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"}},
         {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}]})json",
     /*whole_words=*/true},
    {{"qwen2", "deepseek-r1-qwen"},
     R"json({"type": "Sequence", "pretokenizers": [{"type": "Split", "behavior": "Isolated", "invert": false, "pattern": {
         "Regex": "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"}},
         {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}]})json",
     /*whole_words=*/false,
     R"({"type": "NFC"})"},
};

struct GgufTokens {
  std::vector<std::string> texts;
  std::vector<int32_t> types;  // of GgufTokenType

  size_t size() const { return texts.size(); }
};

}  // namespace weft

#endif  // WEFT_TEXT_TOKENIZERS_GGUF_VOCABULARY_H_
