// ReadText reads texts, and a TokenCorpus samples training and validation batches from a text's tokens.
//
//   WEFT_ASSIGN_OR_RETURN(const std::string text, ReadText("shakespeare.txt"));
//   WEFT_ASSIGN_OR_RETURN(const TokenCorpus corpus, TokenCorpus::Create(ids, /*context=*/64));
//   corpus.Sample({.rows = 12, .context = 64, .random = {.seed = 1, .step = step}}, &windows);
#ifndef WEFT_TEXT_DATA_CORPUS_H_
#define WEFT_TEXT_DATA_CORPUS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weft/core/random.h"
#include "weft/text/data/token_source.h"
#include "weft/text/tokenizers/tokenizer.h"

namespace weft {

// Returns the text of a file, decompressed if the file is gzip-compressed. Returns NotFound if the file is missing.
// Returns InvalidArgument, with the path, if `path` is a folder, or if the text is empty, damaged or not UTF-8.
absl::StatusOr<std::string> ReadText(const std::string& path);
// Reads a file as ReadText does, and returns its lines without line ends ("\n" or "\r\n").
absl::StatusOr<std::vector<std::string>> ReadLines(const std::string& path);
// Encodes each line of `text` without its line end, and returns the tokens of all lines in one array. `path` is the
// text's file, for errors, which begin with "PATH, line 7".
absl::StatusOr<std::vector<int32_t>> EncodeText(const std::string& path, absl::string_view text,
                                                const Tokenizer& tokenizer);
// Returns the King James Bible, one verse a line. Returns NotFound if Debian's package bible-kjv is not installed.
absl::StatusOr<std::string> ReadKingJamesBible();

// The tokens of a text, in memory. All of them are one document.
class TokenCorpus final : public TokenSource {
 public:
  // Uses the last tenth of `tokens` for validation. Returns InvalidArgument unless each split has more than
  // `context` tokens.
  static absl::StatusOr<TokenCorpus> Create(std::vector<int32_t> tokens, int64_t context);
  // Uses a separate text for validation.
  static absl::StatusOr<TokenCorpus> Create(std::vector<int32_t> train, absl::Span<const int32_t> validation,
                                            int64_t context);

  // Fills `out` as SampleWindows does from this corpus alone. `options.context` is at most context().
  void Sample(const WindowOptions& options, TokenBatch* out) const;

  int64_t size(DataSplit split) const override { return static_cast<int64_t>(tokens(split).size()); }
  absl::Status Read(DataSplit split, int64_t begin, absl::Span<int32_t> out) const override;
  absl::Status Documents(DataSplit split, int64_t begin, absl::Span<int32_t> out) const override;

  absl::Span<const int32_t> tokens(DataSplit split) const;
  int64_t context() const { return context_; }

 private:
  TokenCorpus(std::vector<int32_t> tokens, int64_t context, size_t cut)
      : tokens_(std::move(tokens)), context_(context), cut_(cut) {}

  std::vector<int32_t> tokens_;
  int64_t context_;
  size_t cut_;  // the index of the first validation token
};

}  // namespace weft

#endif  // WEFT_TEXT_DATA_CORPUS_H_
