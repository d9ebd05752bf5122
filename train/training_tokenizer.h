// The tokenizer of a training on text: one that is given, or one that is learnt from the data.
#ifndef WEFT_TRAIN_TRAINING_TOKENIZER_H_
#define WEFT_TRAIN_TRAINING_TOKENIZER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "weft/core/hyperparameters.h"
#include "weft/text/byte_level_bpe.h"
#include "weft/text/tokenizer.h"
#include "weft/train/run_directory.h"

namespace weft {

class TrainingTokenizer {
 public:
  // A learnt one has `special` tokens, and what `set_format` gives it.
  TrainingTokenizer(int64_t vocabulary, std::vector<std::string> special,
                    std::function<void(BpeModel*)> set_format = nullptr)
      : vocabulary_(vocabulary), special_(std::move(special)), set_format_(std::move(set_format)) {}

  Hyperparameters Table();  // --tokenizer and --vocabulary
  // Where it lies if no flag says so: in the folder of a run that goes on, or of the weights to begin with.
  void set_default(const std::string& folder) { default_ = folder; }
  // The tokenizer of this run goes on, whatever the flags say, if it has one by now.
  void set_run(const std::string& folder) { run_ = folder; }

  // Reads the run's own, the one that was given, or the default; else learns one from `text`.
  absl::Status Prepare(absl::string_view text);
  // Puts its files into the run's folder.
  absl::Status Write(const RunDirectory& run) const;

  const Tokenizer* operator->() const { return tokenizer_.get(); }
  const Tokenizer& operator*() const { return *tokenizer_; }

 private:
  absl::Status Read(const std::string& path);

  std::string path_, default_, run_;
  int64_t vocabulary_;
  std::vector<std::string> special_;
  std::function<void(BpeModel*)> set_format_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::vector<std::pair<std::string, std::string>> files_;  // names and contents
};

// One for BERTs: learnt, it has their special tokens and format.
TrainingTokenizer BertTokenizer(int64_t vocabulary);

// A special token that the training can't do without: InvalidArgument "the tokenizer has no mask token" if it is unset.
absl::StatusOr<int32_t> NeededToken(const std::optional<int32_t>& id, absl::string_view what);

}  // namespace weft

#endif  // WEFT_TRAIN_TRAINING_TOKENIZER_H_
