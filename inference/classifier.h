// A Classifier classifies texts with a BERT, or pictures with a Vision Transformer, depending on the model that is
// opened.
//
//   WEFT_ASSIGN_OR_RETURN(const auto classifier, OpenClassifier("runs/vit-1", {}));
//   WEFT_RETURN_IF_ERROR(classifier->Classify({"digits.csv"}, [&](absl::Span<const ClassifierResult> results) {
//     for (const ClassifierResult& each : results) std::puts(classifier->Rank(each.values[0])[0].label.c_str());
//   }));
//
// To classify texts or pictures in memory, use TextHead::Run (text_head.h) or PictureClassifier::Run.
#ifndef WEFT_INFERENCE_CLASSIFIER_H_
#define WEFT_INFERENCE_CLASSIFIER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weft/inference/metrics.h"
#include "weft/inference/runtime.h"
#include "weft/text/labelled_examples.h"
#include "weft/text/text_task.h"

namespace weft {

struct ClassifierOptions {
  RuntimeOptions runtime = {};
  bool truncate = false;  // cuts texts that are longer than the context; otherwise they are errors
  bool pairs = false;     // texts are pairs, also if the model does not say so, as published models do not
  std::optional<bool> special_tokens = {};  // Tokenizer::ReadSpecial
  // The format of labelled texts. Its task is not used.
  LabelledDataOptions data = {};
};

struct LabelProbability {
  std::string label;
  double probability;  // or the number of a regression
  int32_t id;          // of the label
};

// Returns all labels with their scores, highest first. `logits`: one for each label.
std::vector<LabelProbability> RankLabels(absl::Span<const std::string> labels, absl::Span<const float> logits,
                                         LabelScores scores = LabelScores::kSoftmax);

// The result for a text, a pair of texts or a picture.
struct ClassifierResult {
  std::vector<std::string> words;  // only for the task tokens
  // One row: the logits of the labels, or the numbers of a regression. For the task tokens: a row of logits for each
  // word; a row is empty if the word has no token, or if it was cut.
  std::vector<std::vector<float>> values;
};

// The score of a model that chooses among classes.
struct ClassScore {
  int64_t count = 0;               // of examples
  double loss = 0;                 // mean, in nats
  double accuracy = 0;             // fraction of examples whose most likely class is the right one
  ConfusionMatrix confusion = {};  // empty where classes are tokens
};

// Returns InvalidArgument unless `scores` is kSoftmax, because examples have one right label each.
absl::Status CheckOneLabel(LabelScores scores);
// Returns the score of examples with these logits and right classes.
ClassScore ScoreClasses(absl::Span<const std::vector<float>> logits, absl::Span<const int32_t> classes);

class Classifier {
 public:
  virtual ~Classifier() = default;

  virtual absl::string_view example() const = 0;  // "text", "pair" or "picture"
  const std::vector<std::string>& labels() const { return labels_; }
  LabelScores scores() const { return scores_; }
  TextTask task() const { return task_; }  // of pictures: kSequence
  std::vector<LabelProbability> Rank(absl::Span<const float> logits) const {
    return RankLabels(labels_, logits, scores_);
  }

  // Receives the results of some examples, in order.
  using Take = absl::FunctionRef<void(absl::Span<const ClassifierResult> results)>;
  // Classifies each line of `files`, or of standard input if `files` is empty. A tab separates the texts of a pair, and
  // white space separates words. A ViT classifies each picture of `files`, which must not be empty. Before an error,
  // `take` gets the results of the lines before the wrong line, or of the pictures in the files before the wrong file.
  virtual absl::Status Classify(const std::vector<std::string>& files, Take take) = 0;

  // Measures the classifier on files of labelled texts (text/labelled_examples.h), or on pictures with labels.
  // `labels`: for pictures in IDX, the file with the labels of the one file of pictures; else empty. Returns
  // InvalidArgument for a label that the model does not have, or if CheckOneLabel does. Not for the tasks tokens and
  // regression, which a TextHead measures.
  virtual absl::StatusOr<ClassScore> Evaluate(const std::vector<std::string>& files, const std::string& labels) = 0;

 protected:
  Classifier(std::vector<std::string> labels, LabelScores scores, TextTask task)
      : labels_(std::move(labels)), scores_(scores), task_(task) {}

 private:
  const std::vector<std::string> labels_;
  const LabelScores scores_;
  const TextTask task_;
};

// Opens the TextHead of a BERT with a classifier (OpenBert), or the PictureClassifier of a ViT. Returns Unimplemented
// if a BERT has no classifier.
absl::StatusOr<std::unique_ptr<Classifier>> OpenClassifier(const std::string& path, const ClassifierOptions& options);

}  // namespace weft

#endif  // WEFT_INFERENCE_CLASSIFIER_H_
