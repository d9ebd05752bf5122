// A Classifier classifies texts with a BERT, or pictures with a Vision Transformer, depending on the model that is
// opened.
//
//   WEFT_ASSIGN_OR_RETURN(const auto classifier, OpenClassifier("runs/vit-1", {.batch = 32}));
//   WEFT_RETURN_IF_ERROR(classifier->Classify({"digits.csv"}, [&](absl::Span<const std::vector<float>> logits) {
//     for (const auto& each : logits) std::puts(classifier->Rank(each)[0].label.c_str());
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
#include "weft/inference/bert_encoder.h"
#include "weft/inference/metrics.h"
#include "weft/inference/open_model.h"
#include "weft/text/labelled_examples.h"
#include "weft/text/text_task.h"

namespace weft {

struct ClassifierOptions {
  bool truncate = false;  // cuts texts that are longer than the context; otherwise they are errors
  int64_t batch = 32;     // maximum number of examples in one execution
  int64_t threads = 0;    // 0: one for each core
  // The dtype in which weights are held (CompileOptions::weights). Unset: that of the model's file.
  std::optional<DType> weights;
  bool pairs = false;  // texts are pairs, also if the model does not say so, as published models do not
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
  std::vector<LabelProbability> Rank(absl::Span<const float> logits) const {
    return RankLabels(labels_, logits, scores_);
  }

  // Receives the logits of some examples, in order.
  using Take = absl::FunctionRef<void(absl::Span<const std::vector<float>> logits)>;
  // Classifies each line of `files`, or of standard input if `files` is empty. A tab separates the texts of a pair. A
  // ViT classifies each picture of `files`, which must not be empty. Before an error, `take` gets the results of the
  // lines before the wrong line, or of the pictures in the files before the wrong file.
  virtual absl::Status Classify(const std::vector<std::string>& files, Take take) = 0;

  // Measures the classifier on files of labelled texts (text/labelled_examples.h), or on pictures with labels.
  // `labels`: for pictures in IDX, the file with the labels of the one file of pictures; else empty. Returns
  // InvalidArgument for a label that the model does not have, or if CheckOneLabel does.
  virtual absl::StatusOr<ClassScore> Evaluate(const std::vector<std::string>& files, const std::string& labels) = 0;

 protected:
  Classifier(std::vector<std::string> labels, LabelScores scores) : labels_(std::move(labels)), scores_(scores) {}

 private:
  const std::vector<std::string> labels_;
  const LabelScores scores_;
};

// Opens a BERT with a classifier (OpenBert) or a ViT (PictureClassifier). Returns Unimplemented if a BERT has no
// classifier. Returns InvalidArgument for the tasks tokens and regression, which a TextHead (text_head.h) computes.
absl::StatusOr<std::unique_ptr<Classifier>> OpenClassifier(const std::string& path, const ClassifierOptions& options);
// Returns the classifier of a BERT that was opened.
absl::StatusOr<std::unique_ptr<Classifier>> ClassifierOf(OpenedBert bert, const ClassifierOptions& options);

}  // namespace weft

#endif  // WEFT_INFERENCE_CLASSIFIER_H_
