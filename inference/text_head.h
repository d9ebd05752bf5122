// A TextHead computes the results of a BERT's classifier for lines of text: logits of the labels of a text or of a pair
// of texts, logits of the labels of each word, or the number of a regression. OpenClassifier (classifier.h) uses it for
// texts and pairs.
//
//   WEFT_ASSIGN_OR_RETURN(OpenedBert bert, OpenBert("runs/classify-1"));
//   WEFT_ASSIGN_OR_RETURN(const auto head, TextHead::Create(std::move(bert), {.batch = 32}));
//   WEFT_RETURN_IF_ERROR(head->Run({"text.txt"}, [&](absl::Span<const HeadResult> results) { ... }));
#ifndef WEFT_INFERENCE_TEXT_HEAD_H_
#define WEFT_INFERENCE_TEXT_HEAD_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
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

// The result for a line of text.
struct HeadResult {
  std::vector<std::string> words;  // only for the task tokens
  // One row: the logits of the labels, or the numbers. For the task tokens: a row of logits for each word; a row is
  // empty if the word has no token, or if it was cut.
  std::vector<std::vector<float>> values;
};

struct TaggingResult {
  TaggingScore tags;
  double loss = 0;  // mean, in nats a word
};
struct RegressionResult {
  int64_t count = 0;                 // of examples
  double loss = 0;                   // mean squared error
  double pearson = 0, spearman = 0;  // correlations of the right and the predicted numbers; NaN if there are none
};

class TextHead {
 public:
  // Returns Unimplemented if the model has no classifier.
  static absl::StatusOr<std::unique_ptr<TextHead>> Create(OpenedBert bert, const ClassifierOptions& options);

  TextTask task() const { return task_; }
  bool pairs() const { return pairs_; }
  const std::vector<std::string>& labels() const { return labels_; }
  LabelScores scores() const { return scores_; }

  using Take = absl::FunctionRef<void(absl::Span<const HeadResult> results)>;
  // Computes the result of each line of `files`, or of standard input if `files` is empty. A tab separates the texts of
  // a pair, and white space separates words. Before an error, `take` gets the results of the lines before the wrong
  // one.
  absl::Status Run(const std::vector<std::string>& files, Take take);
  // Computes the results of examples.
  absl::StatusOr<std::vector<HeadResult>> Run(const LabelledExamples& examples);

  // Reads labelled examples, and computes their figures. Returns InvalidArgument if CheckOneLabel does, or if a
  // regression has several numbers.
  absl::StatusOr<ClassScore> EvaluateClasses(const std::vector<std::string>& files);  // not for regression and tokens
  absl::StatusOr<TaggingResult> EvaluateTags(const std::vector<std::string>& files);  // for tokens
  absl::StatusOr<RegressionResult> EvaluateNumbers(const std::vector<std::string>& files);

 private:
  TextHead(const OpenedBert& bert, const ClassifierOptions& options);
  absl::StatusOr<WordsInput> InputOf(absl::Span<const std::string> texts) const;
  absl::StatusOr<std::vector<std::string>> TextsOf(absl::string_view line) const;
  absl::StatusOr<std::vector<HeadResult>> Run(std::vector<std::vector<std::string>> texts,
                                              absl::Span<const WordsInput> inputs);
  absl::StatusOr<LabelledExamples> Read(const std::vector<std::string>& files) const;

  ClassifierOptions options_;
  TextTask task_;
  bool pairs_;
  std::vector<std::string> labels_;
  LabelScores scores_;
  std::unique_ptr<BertEncoder> encoder_;
};

}  // namespace weft

#endif  // WEFT_INFERENCE_TEXT_HEAD_H_
