#include "weft/inference/classifier.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "weft/core/status.h"
#include "weft/formats/model_formats.h"
#include "weft/formats/weights.h"
#include "weft/inference/picture_classifier.h"
#include "weft/inference/sampling.h"
#include "weft/text/labelled_text.h"
#include "weft/text/lines.h"

namespace weft {
namespace {

class TextClassifier : public Classifier {
 public:
  TextClassifier(std::vector<std::string> labels, std::unique_ptr<BertEncoder> encoder, int64_t batch)
      : Classifier(std::move(labels)),
        encoder_(std::move(encoder)),
        lines_at_once_(kBatchesAtOnce * static_cast<size_t>(batch)) {}

  absl::string_view example() const override { return "text"; }

  absl::Status Classify(const std::vector<std::string>& files, Take take) override {
    const auto encode = [&](absl::string_view line) { return encoder_->Tokens(line); };
    const auto run = [&](const TextLines&, absl::Span<const TokenIds> texts) -> absl::Status {
      WEFT_ASSIGN_OR_RETURN(const std::vector<std::vector<float>> logits, encoder_->Run(texts));
      take(logits);
      return absl::OkStatus();
    };
    return EncodeLines(files, lines_at_once_, encode, run);
  }

  absl::StatusOr<ClassScore> Evaluate(const std::vector<std::string>& files, const std::string& /*labels*/) override {
    const auto encode = [&](absl::string_view line) { return encoder_->Tokens(line); };
    std::vector<TokenIds> texts;
    std::vector<int32_t> classes;
    for (const std::string& path : files) {
      WEFT_ASSIGN_OR_RETURN(const LabelledText text, ReadLabelledText(path));
      WEFT_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, LabelIds(text, labels()));
      classes.insert(classes.end(), ids.begin(), ids.end());
      WEFT_ASSIGN_OR_RETURN(const std::vector<TokenIds> encoded, EncodeAll(text.text, encode));
      texts.insert(texts.end(), encoded.begin(), encoded.end());
    }
    WEFT_ASSIGN_OR_RETURN(const std::vector<std::vector<float>> logits, encoder_->Run(texts));
    return ScoreClasses(logits, classes);
  }

 private:
  const std::unique_ptr<BertEncoder> encoder_;
  const size_t lines_at_once_;
};

}  // namespace

std::vector<LabelProbability> Classifier::Rank(absl::Span<const float> logits) const {
  const std::vector<double> probabilities = Probabilities(logits);
  std::vector<LabelProbability> ranked;
  for (const int32_t i : Largest<double>(probabilities, probabilities.size())) {
    ranked.push_back({labels_[static_cast<size_t>(i)], probabilities[static_cast<size_t>(i)]});
  }
  return ranked;
}

ClassScore ScoreClasses(absl::Span<const std::vector<float>> logits, absl::Span<const int32_t> classes) {
  ClassScore score = {.count = static_cast<int64_t>(logits.size())};
  std::vector<int32_t> predicted;
  for (size_t i = 0; i < logits.size(); ++i) {
    const auto highest = std::max_element(logits[i].begin(), logits[i].end());
    const double max = *highest;
    double sum = 0;
    for (const float logit : logits[i]) sum += std::exp(logit - max);
    score.loss += max + std::log(sum) - logits[i][static_cast<size_t>(classes[i])];
    predicted.push_back(static_cast<int32_t>(highest - logits[i].begin()));
    score.accuracy += predicted.back() == classes[i] ? 1 : 0;
  }
  score.loss /= static_cast<double>(score.count);
  score.accuracy /= static_cast<double>(score.count);
  if (!logits.empty()) score.confusion = CountConfusions(classes, predicted, logits[0].size());
  return score;
}

absl::StatusOr<std::unique_ptr<Classifier>> OpenClassifier(const std::string& path, const ClassifierOptions& options) {
  WEFT_ASSIGN_OR_RETURN(const ModelFamily* const family, FindFamily(path));
  if (family == &PublishedVit::kFamily) return PictureClassifier::Open(path, options);
  WEFT_ASSIGN_OR_RETURN(OpenedBert bert, OpenBert(path));
  return ClassifierOf(std::move(bert), options);
}

absl::StatusOr<std::unique_ptr<Classifier>> ClassifierOf(OpenedBert bert, const ClassifierOptions& options) {
  std::vector<std::string> labels = bert.model.labels;
  WEFT_ASSIGN_OR_RETURN(
      std::unique_ptr<BertEncoder> encoder,
      LabelEncoder(std::move(bert),
                   {.truncate = options.truncate, .batch = options.batch, .threads = options.threads}));
  return std::make_unique<TextClassifier>(std::move(labels), std::move(encoder), options.batch);
}

absl::StatusOr<std::unique_ptr<BertEncoder>> LabelEncoder(OpenedBert bert, const BertEncoderOptions& options) {
  const auto classes = static_cast<int64_t>(bert.model.labels.size());
  if (classes == 0) {
    return absl::UnimplementedError(absl::StrCat(bert.path, ": the model has no classifier"));
  }
  return BertEncoder::Create(std::move(bert), options, [classes](const Bert& model, Var tokens, Var lengths) {
    return model.ClassifyText(HiddenStates(model, tokens, lengths), lengths, classes);
  });
}

}  // namespace weft
