#include "weft/inference/classifier.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "weft/core/status.h"
#include "weft/formats/model_formats.h"
#include "weft/formats/weights.h"
#include "weft/inference/open_model.h"
#include "weft/inference/picture_classifier.h"
#include "weft/inference/sampling.h"
#include "weft/inference/text_head.h"

namespace weft {

std::vector<LabelProbability> RankLabels(absl::Span<const std::string> labels, absl::Span<const float> logits,
                                         LabelScores scores) {
  std::vector<double> values(logits.begin(), logits.end());
  if (scores == LabelScores::kSoftmax) values = Probabilities(logits);
  if (scores == LabelScores::kSigmoid) {
    for (double& value : values) value = 1 / (1 + std::exp(-value));
  }
  std::vector<LabelProbability> ranked;
  for (const int32_t i : Largest<double>(values, values.size())) {
    ranked.push_back({labels[static_cast<size_t>(i)], values[static_cast<size_t>(i)], i});
  }
  return ranked;
}

absl::Status CheckOneLabel(LabelScores scores) {
  if (scores == LabelScores::kSoftmax) return absl::OkStatus();
  return InvalidArgument("the model's problem_type is ",
                         scores == LabelScores::kSigmoid ? "multi_label_classification" : "regression",
                         ", but the examples have one label each; wanted single_label_classification");
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
  return TextHead::Create(std::move(bert), options);
}

}  // namespace weft
