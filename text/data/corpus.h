// A TokenSource is a long row of tokens, in memory (TokenCorpus) or in files (token_files.h). SampleWindows draws the
// windows of a batch from one source or, by weights, from several.
//
//   WEFT_ASSIGN_OR_RETURN(const TokenCorpus books, TokenCorpus::Create(ids, /*context=*/64));
//   const WeightedTokens sources[] = {{&books, 0.7}, {&code, 0.3}};
//   SampleWindows(sources, {.rows = 12, .context = 64, .random = {.seed = 1, .step = step}}, &windows);
#ifndef WEFT_TEXT_DATA_CORPUS_H_
#define WEFT_TEXT_DATA_CORPUS_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/core/random.h"

namespace weft {

// The two splits of a data set.
enum class DataSplit : uint8_t { kTrain, kValidation };

struct TokenBatch {  // [B, T], row by row; targets are the tokens one position later
  std::vector<int32_t> tokens, targets;
  std::vector<int32_t> documents;  // numbers of the tokens' documents, from 0 in each row; empty unless asked for
};

class TokenSource {
 public:
  virtual ~TokenSource() = default;

  virtual int64_t size(DataSplit split) const = 0;
  // Copies the tokens from `begin` on. `begin` + out.size() is at most size(split). Returns an error with the file's
  // path if a file cannot be read.
  virtual absl::Status Read(DataSplit split, int64_t begin, absl::Span<int32_t> out) const = 0;
  // Sets out[i] to the number of documents that begin after token `begin`, up to token `begin` + i. So two tokens have
  // equal numbers if they are in one document.
  virtual absl::Status Documents(DataSplit split, int64_t begin, absl::Span<int32_t> out) const = 0;
  // Returns the number of files that were missing when the source was opened.
  virtual int64_t missing_files() const { return 0; }
  // Returns NotFound with the path of a missing file that has any of the `size` tokens from `begin` on, if there is
  // one.
  virtual absl::Status CheckPresent(DataSplit /*split*/, int64_t /*begin*/, int64_t /*size*/) const {
    return absl::OkStatus();
  }
};

struct WeightedTokens {
  const TokenSource* source;
  double weight = 1;  // the probability of a window from this source is weight / (sum of all weights)
};

struct WindowOptions {
  DataSplit split = DataSplit::kTrain;
  int64_t rows = 1;     // B
  int64_t context = 1;  // T; each source has more tokens than that in `split`
  RandomStream random;  // only seed and step matter
  int64_t batch = 0;    // the batch's number within the step
  // Rows begin .. end - 1 of the B rows are drawn. If `end` is -1, all rows from `begin` are drawn. Each row has the
  // same tokens as in the whole batch.
  int64_t begin = 0, end = -1;
  bool documents = false;  // whether to fill TokenBatch::documents
  // If false, the window of each row is anywhere in its source. If true, each source is divided into B parts of equal
  // length, and the window of row i begins in part i. A process that draws some rows then needs only the tokens of
  // their parts.
  bool by_row = false;

  friend bool operator==(const WindowOptions&, const WindowOptions&) = default;
};

// Fills `out` with windows at random positions. The windows depend only on `options` and the sources, so a resumed run
// draws the same ones. Reads only the tokens of these windows. Returns the error of a source that cannot be read.
absl::Status SampleWindows(absl::Span<const WeightedTokens> sources, const WindowOptions& options, TokenBatch* out);

// Returns the first error of TokenSource::CheckPresent for the windows that SampleWindows would draw. Reads no file.
absl::Status CheckWindows(absl::Span<const WeightedTokens> sources, const WindowOptions& options);

// The tokens of a text, in memory. All of them are one document.
class TokenCorpus final : public TokenSource {
 public:
  // Uses the last tenth of `tokens` for validation. Returns InvalidArgument unless each split has more than
  // `context` tokens.
  static absl::StatusOr<TokenCorpus> Create(std::vector<int32_t> tokens, int64_t context);
  // Uses a separate text for validation.
  static absl::StatusOr<TokenCorpus> Create(std::vector<int32_t> train, absl::Span<const int32_t> validation,
                                            int64_t context);

  // Both splits are all of `tokens`, for a caller that reads one of them.
  static absl::StatusOr<TokenCorpus> Whole(std::vector<int32_t> tokens, int64_t context);

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
  size_t cut_;  // the index of the first validation token; 0: both splits are all tokens
};

}  // namespace weft

#endif  // WEFT_TEXT_DATA_CORPUS_H_
