// ClassifyData reads the examples on which a ClassifyJob trains, and encodes them as tokens and targets.
//
//   ClassifyData data;
//   ...                                                  // set its options, by data.Table()
//   WEFT_RETURN_IF_ERROR(data.Read());
//   ...                                                  // learn a tokenizer from data.text()
//   WEFT_RETURN_IF_ERROR(data.Encode(*tokenizer, /*context=*/128));
//   data.examples(DataSplit::kTrain).tokens[0]
#ifndef WEFT_TRAIN_JOBS_CLASSIFY_DATA_H_
#define WEFT_TRAIN_JOBS_CLASSIFY_DATA_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "weft/options/hyperparameters.h"
#include "weft/text/data/corpus.h"
#include "weft/text/data/labelled_examples.h"
#include "weft/text/tokenizers/tokenizer.h"

namespace weft {

// Encoded examples. Element i of each member belongs to example i.
struct ClassifyExamples {
  std::vector<std::vector<int32_t>> tokens;    // with special tokens
  std::vector<std::vector<int32_t>> segments;  // of the tokens; only for pairs
  // Indices of the labels: one for the text, or one for each word of a sentence. Empty for regression.
  std::vector<std::vector<int32_t>> labels;
  // The index in `tokens` of the first token of each word, or -1 if the word has no token. Only for the task tokens.
  std::vector<std::vector<int32_t>> first_tokens;
  std::vector<float> numbers;  // only for regression
};

class ClassifyData {
 public:
  // Returns the rows of the task and the data: task, data, validation, format, ...
  Hyperparameters Table();
  absl::Status Check() const { return Validate(options_); }

  // Reads the files and sets labels(). Without validation data, every tenth example is one of validation.
  absl::Status Read();
  // Returns all texts to train on, from which a tokenizer can be learnt.
  std::string text() const;
  // Encodes all examples, with at most `context` tokens each. Returns InvalidArgument, with file and line, for an
  // example that is too long or empty, and for a label of the validation data that the training data lack.
  absl::Status Encode(const Tokenizer& tokenizer, int64_t context);

  TextTask task() const { return options_.task; }
  bool pairs() const { return options_.pairs(); }
  // Returns the classes. A regression has one, "LABEL_0", as Hugging Face names it.
  const std::vector<std::string>& labels() const { return labels_; }
  const ClassifyExamples& examples(DataSplit split) const { return split == DataSplit::kTrain ? train_ : validation_; }
  int64_t size() const { return static_cast<int64_t>(train_.tokens.size()); }
  // Returns a fingerprint of the encoded training examples.
  std::string Fingerprint() const;

 private:
  absl::StatusOr<ClassifyExamples> Encode(const LabelledExamples& from, const Tokenizer& tokenizer,
                                          int64_t context) const;

  LabelledDataOptions options_;
  std::string data_path_, validation_path_;
  bool truncate_ = false;

  LabelledExamples train_text_, validation_text_;
  std::vector<std::string> labels_;
  ClassifyExamples train_, validation_;
};

}  // namespace weft

#endif  // WEFT_TRAIN_JOBS_CLASSIFY_DATA_H_
