// Sentences and their translations, as a Transformer is trained on them: encoded, with begin and end tokens, in rows of
// equal length.
//
//   WEFT_ASSIGN_OR_RETURN(ParallelText text, ReadParallelText("train.de", "train.en"));
//   WEFT_ASSIGN_OR_RETURN(std::vector<SentencePair> pairs, EncodePairs(text, tokenizer, {.context = 128}));
#ifndef WEFT_TEXT_SENTENCE_PAIRS_H_
#define WEFT_TEXT_SENTENCE_PAIRS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/core/random.h"
#include "weft/text/tokenizer.h"

namespace weft {

struct TextLines {
  std::string path;  // for errors
  std::vector<std::string> lines;
  std::vector<size_t> numbers = {};  // of the lines in the file, from 1; empty: 1, 2, ...

  std::string Place(size_t index) const;  // "FILE, line 7"
  // Appends line `index` of another part of the same file.
  void Take(const TextLines& from, size_t index);
};
struct ParallelText {
  TextLines source, target;  // of as many lines
};
// InvalidArgument, with both counts, if one file has more lines.
absl::StatusOr<ParallelText> ReadParallelText(const std::string& source, const std::string& target);

struct SentencePair {
  std::vector<int32_t> source, target;  // without begin and end
  int64_t length() const;               // of a row that holds either side, with its end or begin
};

struct EncodeLimits {
  int64_t context = 0;    // the most tokens of a row
  bool truncate = false;  // what is longer is cut, which else is an error
};
// The ids of line `index` of a text, with room for `reserved` more tokens in the context. InvalidArgument, with file
// and line, for an empty line, one that is not UTF-8, and one that is too long; also for a context without room.
absl::StatusOr<std::vector<int32_t>> EncodeLine(const TextLines& text, size_t index, const Tokenizer& tokenizer,
                                                const EncodeLimits& limits, int64_t reserved);
absl::StatusOr<std::vector<SentencePair>> EncodePairs(const ParallelText& text, const Tokenizer& tokenizer,
                                                      const EncodeLimits& limits);
std::vector<int64_t> Lengths(absl::Span<const SentencePair> pairs);

struct PairTokens {
  int32_t begin = 0, end = 0, padding = 0;
};

// A batch [B, L], row by row. Rows without a pair are padding.
struct PairRows {
  std::vector<int32_t> source, source_lengths;  // [B, L] with the end token; [B]
  std::vector<int32_t> input;                   // [B, L]: what the decoder sees: begin, then the translation
  std::vector<int32_t> target;                  // [B, L]: what it should say: the translation, then end; -100 where no
                                                // token is
  std::vector<bool> is_text;                    // [B, L]: where the input is a token of the translation
  int64_t sources = 0, targets = 0;             // tokens that are not padding

  void Fill(absl::Span<const SentencePair> pairs, absl::Span<const int32_t> examples, int64_t rows, int64_t length,
            const PairTokens& tokens);
  // Scheduled sampling: puts what the model would say, i32 [B, L], in place of `part` of the translations' tokens in
  // the input: said[t] is its guess of what input[t + 1] is.
  void Replace(absl::Span<const int32_t> said, double part, RandomStream random);
};

}  // namespace weft

#endif  // WEFT_TEXT_SENTENCE_PAIRS_H_
