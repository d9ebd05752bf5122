// GptData is the data of a training of a GPT: texts or token files, for training and for validation, and the tokenizer.
//
//   TrainingTokenizer tokenizer = GptTokenizer(8000);
//   GptData data(&tokenizer);
//   WEFT_RETURN_IF_ERROR(SetFromText("book.txt", data.Table()[0]));
//   WEFT_RETURN_IF_ERROR(data.Open(/*context=*/64));
//   WEFT_RETURN_IF_ERROR(data.Draw(windows_of_step_0, windows_of_step_1, &batch));
#ifndef WEFT_TRAIN_JOBS_GPT_DATA_H_
#define WEFT_TRAIN_JOBS_GPT_DATA_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "weft/options/hyperparameters.h"
#include "weft/text/data/corpus.h"
#include "weft/text/data/token_files.h"
#include "weft/text/data/token_sources.h"
#include "weft/train/jobs/training_tokenizer.h"

namespace weft {

class GptData {
 public:
  // `tokenizer` must outlive the data.
  explicit GptData(TrainingTokenizer* tokenizer) : tokenizer_(*tokenizer) {}

  Hyperparameters Table();  // rows data and validation, and those of TrainingTokenizer
  // Reports whether the data is token files, which know where documents begin.
  bool is_token_files() const { return TokenSources::Names(data_); }

  // Opens the data, whose windows have `context` tokens, and reads or learns the tokenizer. Must be called before the
  // other functions. `missing`: see TokenFiles::Open.
  absl::Status Open(int64_t context, MissingShards missing = MissingShards::kRefuse);

  const std::string& fingerprint() const { return sources_->fingerprint(); }
  int64_t size(DataSplit split) const { return sources_->size(split); }
  // Returns "3840000 characters (87 different)".
  std::string Counts() const;
  // Returns the bytes of the text of `tokens`, or 0 if they are not known.
  int64_t Bytes(absl::Span<const int32_t> tokens) const;
  // Draws the windows `now`. From token files, also begins to read the windows `next`.
  absl::Status Draw(const WindowOptions& now, const WindowOptions& next, TokenBatch* out);
  // Returns the number of missing shards of token files.
  int64_t missing_files() const { return sources_->missing_files(); }
  // Returns NotFound with the path of a missing shard that Draw would need. Reads no file.
  absl::Status Check(const WindowOptions& windows) const { return sources_->Check(windows); }

 private:
  absl::Status OpenTexts(int64_t context);
  absl::Status OpenTokenFiles(int64_t context);
  absl::Status OpenValidation(int64_t context);

  std::string data_, validation_;
  MissingShards missing_ = MissingShards::kRefuse;
  TrainingTokenizer& tokenizer_;
  std::vector<int32_t> token_bytes_;  // by id
  std::unique_ptr<TokenSources> sources_;
  std::unique_ptr<ReadAhead> ahead_;  // null for texts, which are in memory
};

}  // namespace weft

#endif  // WEFT_TRAIN_JOBS_GPT_DATA_H_
