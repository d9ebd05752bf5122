// These functions prepare sentences and their translations to train a Transformer: they read and encode lines. PairRows
// fills batches of rows of equal length, with begin and end tokens.
//
//   WEFT_ASSIGN_OR_RETURN(ParallelText text, ReadParallelText("train.de", "train.en"));
//   WEFT_ASSIGN_OR_RETURN(std::vector<SentencePair> pairs, EncodePairs(text, tokenizer, {.context = 128}));
#ifndef WEFT_TEXT_DATA_SENTENCE_PAIRS_H_
#define WEFT_TEXT_DATA_SENTENCE_PAIRS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/core/random.h"
#include "weft/text/data/lines.h"
#include "weft/text/tokenizers/tokenizer.h"

namespace weft {

struct ParallelText {
  TextLines source, target;  // with equal numbers of lines
};
// Returns InvalidArgument, with both counts, if the files have different numbers of lines.
absl::StatusOr<ParallelText> ReadParallelText(const std::string& source, const std::string& target);
// Returns the lines of `target`. Returns the same error if their number is not that of `source`.
absl::StatusOr<std::vector<std::string>> ReadLinesLike(const TextLines& source, const std::string& target);

struct SentencePair {
  std::vector<int32_t> source, target;  // source: as the encoder reads it; target: without begin and end tokens
  int64_t length() const;               // minimum row length: the source, or the target and one special token
};
// The special tokens of a model's format, beside the begin and end tokens of targets.
struct PairFormat {
  std::vector<int32_t> before_source, after_source;
  std::vector<int32_t> before_target;  // follow the begin token, and are predicted as the target is
};

struct EncodeLimits {
  int64_t context = 0;    // maximum number of tokens in a row
  bool truncate = false;  // true: longer lines are cut; false: they are errors
};
// Returns how many of `count` tokens to keep, so that they and `reserved` special tokens fit into `limits.context`.
// Returns InvalidArgument if `count` is 0, if the context has no room for text, or if tokens would be cut but
// `limits.truncate` is not set.
absl::StatusOr<size_t> TokensThatFit(size_t count, size_t reserved, const EncodeLimits& limits);
// Returns the ids of line `index` of `text`. The ids and `reserved` special tokens must fit into `limits.context`; if
// `limits.truncate` is set, surplus ids are cut. Returns InvalidArgument, with file and line, if the line has no ids,
// cannot be encoded or is too long. Also returns InvalidArgument if the context has no room for text.
absl::StatusOr<std::vector<int32_t>> EncodeLine(const TextLines& text, size_t index, const Tokenizer& tokenizer,
                                                const EncodeLimits& limits, size_t reserved);
// Targets are encoded by the tokenizer's ForTargets, if it has one.
absl::StatusOr<std::vector<SentencePair>> EncodePairs(const ParallelText& text, const Tokenizer& tokenizer,
                                                      const EncodeLimits& limits, const PairFormat& format);
std::vector<int64_t> Lengths(absl::Span<const SentencePair> pairs);

struct PairTokens {
  int32_t begin = 0, end = 0, padding = 0;
};

// PairRows holds a batch of padded pairs, [B, L], row by row. Rows without a pair hold only padding, which is -100 in
// `target`.
struct PairRows {
  std::vector<int32_t> source, source_lengths;  // [B, L]; [B]
  std::vector<int32_t> input;                   // [B, L]: the decoder's input: the begin token, then the translation
  std::vector<int32_t> target;                  // [B, L]: its target: the translation, then the end token, then -100
  std::vector<bool> is_text;                    // [B, L]: whether the input is a token of the translation
  int64_t sources = 0, targets = 0;             // numbers of tokens that are not padding

  void Fill(absl::Span<const SentencePair> pairs, absl::Span<const int32_t> examples, int64_t rows, int64_t length,
            const PairTokens& tokens);
  // For scheduled sampling, replaces each token of the translations in `input` by the model's prediction with
  // probability `probability`. `predicted` is i32 [B, L]; in each row, predicted[t] predicts input[t + 1].
  void Replace(absl::Span<const int32_t> predicted, double probability, RandomStream random);
};

}  // namespace weft

#endif  // WEFT_TEXT_DATA_SENTENCE_PAIRS_H_
