// A TextHead is the Classifier of a BERT. It computes logits of the labels of a text or of a pair of texts, logits of
// the labels of each word, or the number of a regression.
//
//   WEFT_ASSIGN_OR_RETURN(OpenedBert bert, OpenBert("runs/classify-1"));
//   WEFT_ASSIGN_OR_RETURN(const auto head, TextHead::Create(std::move(bert), {.truncate = true}));
//   WEFT_ASSIGN_OR_RETURN(const TaggingResult score, head->EvaluateTags({"test.conll"}));
#ifndef WEFT_INFERENCE_TEXT_HEAD_H_
#define WEFT_INFERENCE_TEXT_HEAD_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weft/inference/bert_encoder.h"
#include "weft/inference/classifier.h"
#include "weft/inference/open_model.h"
#include "weft/inference/tagging_metrics.h"
#include "weft/text/classifier_input.h"
#include "weft/text/labelled_examples.h"

namespace weft {

struct TaggingResult {
  TaggingScore tags;
  double loss = 0;  // mean, in nats a word
};
struct RegressionResult {
  int64_t count = 0;                 // of examples
  double loss = 0;                   // mean squared error
  double pearson = 0, spearman = 0;  // correlations of the right and the predicted numbers; NaN if there are none
};

class TextHead final : public Classifier {
 public:
  // Returns Unimplemented if the model has no classifier.
  static absl::StatusOr<std::unique_ptr<TextHead>> Create(OpenedBert bert, const ClassifierOptions& options);

  absl::string_view example() const override { return pairs_ ? "pair" : "text"; }
  absl::Status Classify(const std::vector<std::string>& files, Take take) override;
  absl::StatusOr<ClassScore> Evaluate(const std::vector<std::string>& files, const std::string& labels) override;

  // Computes the results of examples.
  absl::StatusOr<std::vector<ClassifierResult>> Run(const LabelledExamples& examples);
  // Read labelled examples, and compute the figures of the tasks tokens and regression. The second returns
  // InvalidArgument if the model predicts several numbers.
  absl::StatusOr<TaggingResult> EvaluateTags(const std::vector<std::string>& files);
  absl::StatusOr<RegressionResult> EvaluateNumbers(const std::vector<std::string>& files);

 private:
  TextHead(const OpenedBert& bert, const ClassifierOptions& options);
  absl::StatusOr<WordsInput> InputOf(absl::Span<const std::string> texts) const;
  absl::StatusOr<std::vector<std::string>> TextsOf(absl::string_view line) const;
  absl::StatusOr<std::vector<ClassifierResult>> Run(std::vector<std::vector<std::string>> texts,
                                                    absl::Span<const WordsInput> inputs);
  absl::StatusOr<LabelledExamples> Read(const std::vector<std::string>& files) const;

  const ClassifierOptions options_;
  const bool pairs_;
  std::unique_ptr<BertEncoder> encoder_;
};

}  // namespace weft

#endif  // WEFT_INFERENCE_TEXT_HEAD_H_
