// A Classifier classifies texts with a BERT, or pictures with a Vision Transformer, depending on the model that is
// opened.
//
//   WEFT_ASSIGN_OR_RETURN(const auto classifier, OpenClassifier("runs/vit-1", {}));
//   WEFT_RETURN_IF_ERROR(classifier->Classify({"digits.csv"}, [&](absl::Span<const ClassifierResult> results) {
//     for (const ClassifierResult& each : results) {
//       std::puts(RankLabels(classifier->labels(), each.values[0], classifier->scores())[0].label.c_str());
//     }
//   }));
//
// To classify texts or pictures in memory, open a TextHead or a PictureClassifier:
//
//   WEFT_ASSIGN_OR_RETURN(const auto pictures, PictureClassifier::Open("runs/vit-1", {}));
//   WEFT_ASSIGN_OR_RETURN(const auto logits, pictures->Run(images));
#ifndef WEFT_INFERENCE_ENCODE_CLASSIFIER_H_
#define WEFT_INFERENCE_ENCODE_CLASSIFIER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weft/core/parameters.h"
#include "weft/formats/image_processor.h"
#include "weft/formats/images.h"
#include "weft/formats/weights.h"
#include "weft/inference/encode/bert_encoder.h"
#include "weft/inference/runtime/open_model.h"
#include "weft/inference/runtime/runtime.h"
#include "weft/models/vit.h"
#include "weft/text/data/classifier_input.h"
#include "weft/text/data/labelled_examples.h"
#include "weft/text/data/text_task.h"

namespace weft {

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

class Classifier {
 public:
  virtual ~Classifier() = default;

  virtual absl::string_view example() const = 0;  // "text", "pair" or "picture"
  const std::vector<std::string>& labels() const { return labels_; }
  LabelScores scores() const { return scores_; }
  TextTask task() const { return task_; }  // of pictures: kSequence

  // Receives the results of some examples, in order.
  using Take = absl::FunctionRef<void(absl::Span<const ClassifierResult> results)>;
  // Classifies each line of `files`, or of standard input if `files` is empty. A tab separates the texts of a pair, and
  // white space separates words. A ViT classifies each picture of `files`, which must not be empty. Before an error,
  // `take` gets the results of the lines before the wrong line, or of the pictures in the files before the wrong file.
  virtual absl::Status Classify(const std::vector<std::string>& files, Take take) = 0;

 protected:
  Classifier(std::vector<std::string> labels, LabelScores scores, TextTask task)
      : labels_(std::move(labels)), scores_(scores), task_(task) {}

 private:
  const std::vector<std::string> labels_;
  const LabelScores scores_;
  const TextTask task_;
};

// The classifier of a BERT. It computes logits of the labels of a text or of a pair of texts, logits of the labels of
// each word, or the number of a regression.
class TextHead final : public Classifier {
 public:
  // Texts are pairs if the model's files or `options.pairs` say so. The files of published models never do. Returns
  // Unimplemented if the model has no classifier.
  static absl::StatusOr<std::unique_ptr<TextHead>> Create(OpenedBert bert, const BertEncoderOptions& options);

  bool pairs() const { return pairs_; }
  absl::string_view example() const override { return pairs_ ? "pair" : "text"; }
  absl::Status Classify(const std::vector<std::string>& files, Take take) override;

  // Returns the text, both texts of a pair, or the words, as Classify separates them in a line.
  absl::StatusOr<std::vector<std::string>> TextsOf(absl::string_view line) const;
  // Computes the results of examples.
  absl::StatusOr<std::vector<ClassifierResult>> Run(const LabelledExamples& examples);

 private:
  TextHead(const OpenedBert& bert, const BertEncoderOptions& options);
  struct Example {
    std::vector<std::string> texts;
    WordsInput input;
  };
  absl::Status Add(absl::StatusOr<std::vector<std::string>> texts, std::vector<Example>* examples) const;
  absl::StatusOr<std::vector<ClassifierResult>> Run(std::vector<Example> examples);

  const BertEncoderOptions options_;
  const bool pairs_;
  std::unique_ptr<BertEncoder> encoder_;
};

// Returns InvalidArgument if the pictures' size or channels are not the model's.
absl::Status CheckSize(const Images& images, const VitConfig& config);

// The classifier of a Vision Transformer.
class PictureClassifier final : public Classifier {
 public:
  // `path`: a model, as for ReadModel. The errors of ReadImageProcessor are returned.
  static absl::StatusOr<std::unique_ptr<PictureClassifier>> Open(const std::string& path,
                                                                 const RuntimeOptions& options);

  // Returns the logits of each picture's classes. Returns InvalidArgument if the pictures' size is not the model's.
  absl::StatusOr<std::vector<std::vector<float>>> Run(const Images& images);

  const VitConfig& config() const { return config_; }
  const ImageProcessor& processor() const { return processor_; }
  absl::string_view example() const override { return "picture"; }
  absl::Status Classify(const std::vector<std::string>& files, Take take) override;

 private:
  PictureClassifier(const PublishedVit& vit, ImageProcessor processor, int64_t batch);

  const VitConfig config_;
  const ImageProcessor processor_;
  const int64_t batch_;
  Parameters parameters_{{.draw = false}};
  EvalGraph graph_;
  Var input_, logits_;  // f32 [B, height, width, channels], [B, classes]
};

// Opens the TextHead of a BERT with a classifier (OpenBert), or the PictureClassifier of a ViT, which uses the runtime
// of `options` only. Returns Unimplemented if a BERT has no classifier.
absl::StatusOr<std::unique_ptr<Classifier>> OpenClassifier(const std::string& path, const BertEncoderOptions& options);

}  // namespace weft

#endif  // WEFT_INFERENCE_ENCODE_CLASSIFIER_H_
