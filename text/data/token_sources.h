// TokenSources are the sources that a training draws its windows from: a text in memory, or folders of token files with
// weights. A ReadAhead draws the windows of the next batch while the present one is in use.
//
//   WEFT_ASSIGN_OR_RETURN(const TokenSources sources, TokenSources::Open("books:0.7,code:0.3", /*context=*/64));
//   ReadAhead windows(&sources);
//   WEFT_RETURN_IF_ERROR(windows.Take(options_of_step(0), options_of_step(1), &batch));
#ifndef WEFT_TEXT_DATA_TOKEN_SOURCES_H_
#define WEFT_TEXT_DATA_TOKEN_SOURCES_H_

#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "weft/text/data/corpus.h"
#include "weft/text/data/token_files.h"

namespace weft {

class TokenSources {
 public:
  // kTenth: the last tenth of each folder's tokens is for validation. kWhole: both splits are all tokens.
  enum Splits : uint8_t { kTenth, kWhole };

  // Returns the folders of `data`, as Open reads them, without their weights.
  static std::vector<std::string> Folders(const std::string& data);
  // Reports whether `data` names token files: a folder with an index, or a list that Open reads.
  static bool Names(const std::string& data);
  // Opens the folders that `data` names, "DIR,DIR" or "DIR:WEIGHT,DIR:WEIGHT". Without weights, a folder weighs as much
  // as it has training tokens. Returns InvalidArgument if a weight is missing or not positive, if the folders have
  // different tokenizers, or unless each split of a folder has more than `context` tokens.
  // `missing`: see TokenFiles::Open.
  static absl::StatusOr<TokenSources> Open(const std::string& data, int64_t context, Splits splits = kTenth,
                                           MissingShards missing = MissingShards::kRefuse);
  TokenSources(std::shared_ptr<const TokenSource> source, std::string fingerprint);
  // Draws the windows for validation from `validation` from now on.
  void SetValidation(TokenSources validation);

  // Draws windows, as SampleWindows does.
  absl::Status Sample(const WindowOptions& options, TokenBatch* out) const {
    return SampleWindows(Weighted(options.split), options, out);
  }
  // Returns NotFound with the path of a missing file that Sample would need. Reads no file.
  absl::Status Check(const WindowOptions& options) const { return CheckWindows(Weighted(options.split), options); }
  int64_t missing_files() const;        // the sum over all sources, also those for validation
  int64_t size(DataSplit split) const;  // tokens of all sources
  // Returns the folder whose tokenizer all sources have; empty for a text.
  const std::string& tokenizer() const { return tokenizer_; }
  // Returns a checksum of all files and weights.
  const std::string& fingerprint() const { return fingerprint_; }

 private:
  TokenSources() = default;
  const std::vector<WeightedTokens>& Weighted(DataSplit split) const {
    return split == DataSplit::kValidation && !validation_.empty() ? validation_ : weighted_;
  }

  std::vector<std::shared_ptr<const TokenSource>> sources_;
  std::vector<WeightedTokens> weighted_, validation_;  // no `validation_`: the validation splits of `weighted_`
  std::string tokenizer_, fingerprint_;
};

class ReadAhead {
 public:
  // `sources` must outlive the object.
  explicit ReadAhead(const TokenSources* sources) : sources_(sources) {}
  ReadAhead(ReadAhead&&) = delete;  // its thread writes to it

  // Draws the windows of `now` into `out`, and begins to draw those of `next` on a thread of its own. If `now` is the
  // previous call's `next`, its windows are ready or nearly so. The windows are the same in either case.
  // Returns the error of a source that cannot be read.
  absl::Status Take(const WindowOptions& now, const WindowOptions& next, TokenBatch* out);

 private:
  const TokenSources* sources_;
  WindowOptions asked_;  // which windows `batch_` gets
  TokenBatch batch_;
  std::future<absl::Status> drawn_;  // the last member, so that its thread ends first
};

}  // namespace weft

#endif  // WEFT_TEXT_DATA_TOKEN_SOURCES_H_
