// A text as token ids, split for training and validation, and its batches.
//
//   WEFT_ASSIGN_OR_RETURN(const std::string text, ReadText("shakespeare.txt"));
//   WEFT_ASSIGN_OR_RETURN(const TokenCorpus corpus, TokenCorpus::Create(ids, /*context=*/64));
//   corpus.Sample(CorpusPart::kTrain, /*batch=*/12, {.seed = 1, .step = step}, 0, &batch);
#ifndef WEFT_TEXT_CORPUS_H_
#define WEFT_TEXT_CORPUS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weft/core/random.h"
#include "weft/text/tokenizer.h"

namespace weft {

// The text of a file, which gzip may have compressed. NotFound if it is missing; InvalidArgument, naming it, if it is a
// folder, empty or not UTF-8.
absl::StatusOr<std::string> ReadText(const std::string& path);
// Its lines, without their ends ("\n" or "\r\n").
absl::StatusOr<std::vector<std::string>> ReadLines(const std::string& path);
// A text's tokens, line by line: an error begins with "PATH, line 7".
absl::StatusOr<std::vector<int32_t>> EncodeText(const std::string& path, absl::string_view text,
                                                const Tokenizer& tokenizer);
// The King James Bible, one verse a line, from Debian's package bible-kjv. NotFound if that is not installed.
absl::StatusOr<std::string> ReadKingJamesBible();

enum class CorpusPart : uint8_t { kTrain, kValidation };

struct TokenBatch {  // [B, T], row by row; targets are the tokens one position later
  std::vector<int32_t> tokens, targets;
};

class TokenCorpus {
 public:
  // The last tenth is for validation. InvalidArgument if a part has no more tokens than `context`.
  static absl::StatusOr<TokenCorpus> Create(std::vector<int32_t> tokens, int64_t context);
  // With a text of its own for validation.
  static absl::StatusOr<TokenCorpus> Create(std::vector<int32_t> train, absl::Span<const int32_t> validation,
                                            int64_t context);

  // `rows` windows that begin anywhere in the part. They depend on the part, `random`'s seed and step, and the batch's
  // number within the step: a sampler without state, so a resumed run continues where it was.
  void Sample(CorpusPart part, int64_t rows, RandomStream random, int64_t batch, TokenBatch* out) const;

  absl::Span<const int32_t> tokens(CorpusPart part) const;
  int64_t context() const { return context_; }

 private:
  TokenCorpus(std::vector<int32_t> tokens, int64_t context, size_t cut)
      : tokens_(std::move(tokens)), context_(context), cut_(cut) {}

  std::vector<int32_t> tokens_;
  int64_t context_;
  size_t cut_;  // where validation begins
};

}  // namespace weft

#endif  // WEFT_TEXT_CORPUS_H_
