// The steps of a pipeline, as Hugging Face's tokenizers have them. pipeline.h says what each kind of step does.
//
//   WEFT_ASSIGN_OR_RETURN(const Normalizer compose, ReadNormalizer(R"({"type": "NFC"})"_json));
//   std::string text = "e\u0301";
//   WEFT_RETURN_IF_ERROR(compose(&text));                // "é"
//   WEFT_ASSIGN_OR_RETURN(const PreTokenizer marks, ReadPreTokenizer(R"({"type": "Punctuation"})"_json));
//   WEFT_ASSIGN_OR_RETURN(const Decoder join, ReadDecoder(R"({"type": "WordPiece", "prefix": "##"})"_json));
//   std::vector<std::string> tokens = {"em", "##bed", "it"};
//   join(&tokens);                                       // "em" "bed" " it"
#ifndef WEFT_TEXT_TOKENIZERS_PIPELINE_STEPS_H_
#define WEFT_TEXT_TOKENIZERS_PIPELINE_STEPS_H_

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "weft/text/regular_expression.h"
#include "weft/text/tokenizers/pipeline.h"

namespace weft {

// These read an object of tokenizer.json that is not a Sequence.
absl::StatusOr<Normalizer> ReadNormalizer(const nlohmann::json& object);
absl::StatusOr<PreTokenizer> ReadPreTokenizer(const nlohmann::json& object);
absl::StatusOr<Decoder> ReadDecoder(const nlohmann::json& object);

// The expression in GPT-2's encoder.py that splits a text into words.
inline constexpr char kGpt2Words[] = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
// Returns the end of the word that begins at byte `begin`. The first matching alternative of kGpt2Words gives the word.
// `text` must be UTF-8, and `begin` less than text.size().
size_t Gpt2WordEnd(absl::string_view text, size_t begin);

struct ByteLevelWords {
  bool prefix_space = false;  // puts ' ' before a text that doesn't begin with ' '
  bool gpt2_words = true;     // splits the text as Gpt2WordEnd does
  bool alphabet = true;       // spells the words in the byte alphabet (vocabulary.h)
};
PreTokenizer SplitByteLevel(ByteLevelWords settings);

struct BertNormalizer {
  bool clean_text = true;     // removes control characters and U+FFFD; replaces white space by ' '
  bool separate_cjk = true;   // makes each CJK ideograph a word
  bool strip_accents = true;  // decomposes characters (NFD) and drops combining marks
  bool lowercase = true;
};
// Returns `text`, which must be UTF-8, in its normalized form.
std::string BertNormalize(absl::string_view text, const BertNormalizer& normalizer);
Normalizer NormalizeForBert(BertNormalizer settings);

// Reports whether `code_point` is a word of its own: Unicode punctuation, or an ASCII symbol such as '$', which BERT
// treats as punctuation.
bool EndsWord(int32_t code_point);
// Returns the words of `text`, which must be UTF-8. White space separates words. Each character that EndsWord is one.
std::vector<absl::string_view> BertWords(absl::string_view text);
PreTokenizer SplitBertWords();

// Drops `prefix` of tokens after the first, and puts a space before tokens without it. `clean_up`: no space is before
// the marks and contractions of English, in each token on its own.
Decoder JoinWordPieces(std::string prefix, bool clean_up);

Normalizer PrependText(std::string text);  // leaves an empty text empty
Decoder JoinAll();                         // makes one text of all tokens

// These read what several kinds of steps have in tokenizer.json: the mark and the scheme of a Metaspace, also as older
// files have it, and the pattern of a Split or Replace.
absl::StatusOr<std::string> ReadMark(const nlohmann::json& object);
enum class PrependScheme { kAlways, kFirst, kNever };
absl::StatusOr<PrependScheme> ReadPrependScheme(const nlohmann::json& object);
absl::StatusOr<RegularExpression> ReadPattern(const nlohmann::json& object);

}  // namespace weft

#endif  // WEFT_TEXT_TOKENIZERS_PIPELINE_STEPS_H_
