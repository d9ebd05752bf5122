// Pre-tokenizers split a text into the words that a model encodes separately, as those of Hugging Face's tokenizers do.
//
//   WEFT_ASSIGN_OR_RETURN(const PreTokenizer digits, SplitBy(R"(\p{N}{1,3})", SplitBehavior::kIsolated));
//   WEFT_ASSIGN_OR_RETURN(const PreTokenizer marks, ReadPreTokenizer(R"({"type": "Punctuation"})"_json));
#ifndef WEFT_TEXT_TOKENIZERS_PRE_TOKENIZERS_H_
#define WEFT_TEXT_TOKENIZERS_PRE_TOKENIZERS_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "weft/text/regular_expression.h"
#include "weft/text/tokenizers/pipeline.h"

namespace weft {

// What a split does with a match: it is a word, is left out, is the end of the text before it, is the beginning of the
// text behind it, or is one word with the matches next to it.
enum class SplitBehavior { kIsolated, kRemoved, kMergedWithPrevious, kMergedWithNext, kContiguous };

// Splits at the matches of a regular expression, or with `invert`, at what is between them.
absl::StatusOr<PreTokenizer> SplitBy(absl::string_view pattern, SplitBehavior behavior = SplitBehavior::kIsolated,
                                     bool invert = false);

struct ByteLevelWords {
  bool prefix_space = false;  // puts ' ' before a text that doesn't begin with ' '
  bool gpt2_words = true;     // splits the text as Gpt2WordEnd (words.h) does
  bool alphabet = true;       // spells the words in the byte alphabet (byte_alphabet.h)
};
PreTokenizer SplitByteLevel(ByteLevelWords settings);

enum class PrependScheme { kAlways, kFirst, kNever };
// Replaces spaces by `mark`, and puts it before a text that does not begin with it: any text, or only the first.
// `split`: words begin with the mark.
PreTokenizer SplitMetaspace(std::string mark, PrependScheme scheme, bool split);
PreTokenizer SplitBertWords();  // BertWords (words.h)

// These read what several kinds of steps have in tokenizer.json: the mark and the scheme of a Metaspace, also as older
// files have it, and the pattern of a Split or Replace.
absl::StatusOr<std::string> ReadMark(const nlohmann::json& object);
absl::StatusOr<PrependScheme> ReadPrependScheme(const nlohmann::json& object);
absl::StatusOr<RegularExpression> ReadPattern(const nlohmann::json& object);

// Reads an object of tokenizer.json that is not a Sequence.
absl::StatusOr<PreTokenizer> ReadPreTokenizer(const nlohmann::json& object);

}  // namespace weft

#endif  // WEFT_TEXT_TOKENIZERS_PRE_TOKENIZERS_H_
