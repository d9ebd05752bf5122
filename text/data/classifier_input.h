// These functions turn texts, pairs of texts and lists of words into the input of a BERT, with its special tokens.
//
//   WEFT_ASSIGN_OR_RETURN(const ModelInput pair, PairInput("a text", "another", tokenizer, {.context = 128}));
//   pair.ids        // [CLS] a text [SEP] another [SEP]
//   WEFT_ASSIGN_OR_RETURN(const WordsInput words, InputOfWords({"Don't", "panic"}, tokenizer, {.context = 128}));
//   words.first     // {1, 4}: where each word's first token is in [CLS] don ' t panic [SEP]
#ifndef WEFT_TEXT_DATA_CLASSIFIER_INPUT_H_
#define WEFT_TEXT_DATA_CLASSIFIER_INPUT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weft/text/data/sentence_pairs.h"
#include "weft/text/tokenizers/tokenizer.h"

namespace weft {

// The functions return InvalidArgument if a text has no tokens, or if the input is longer than `limits.context` and
// `limits.truncate` is not set.

absl::StatusOr<ModelInput> TextInput(absl::string_view text, const Tokenizer& tokenizer, const EncodeLimits& limits);

// Returns the input of a pair in the tokenizer's format for pairs. Truncation shortens the longer text first, as
// "longest_first" of Hugging Face's tokenizers does.
absl::StatusOr<ModelInput> PairInput(absl::string_view first, absl::string_view second, const Tokenizer& tokenizer,
                                     const EncodeLimits& limits);

struct WordsInput {
  ModelInput input;
  // The index of the first token of each word in input.ids; -1 for a word without tokens, or one that was cut.
  std::vector<int32_t> first;
};
// Encodes each word on its own, the second and later words with a space before them.
absl::StatusOr<WordsInput> InputOfWords(absl::Span<const std::string> words, const Tokenizer& tokenizer,
                                        const EncodeLimits& limits);

}  // namespace weft

#endif  // WEFT_TEXT_DATA_CLASSIFIER_INPUT_H_
