// Loss and accuracy of classifiers.
#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "weft/apps/evaluation/evaluate.h"
#include "weft/core/status.h"
#include "weft/inference/picture_classifier.h"
#include "weft/inference/text_classifier.h"
#include "weft/text/labelled_text.h"

namespace weft {
namespace {

class Score {
 public:
  void Add(absl::Span<const float> logits, int32_t label) {
    const double most = *std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (const float logit : logits) sum += std::exp(logit - most);
    loss_ += most + std::log(sum) - logits[static_cast<size_t>(label)];
    correct_ += std::max_element(logits.begin(), logits.end()) - logits.begin() == label ? 1 : 0;
    ++count_;
  }

  Figures figures(const char* what, const std::string& of) const {
    const auto count = static_cast<double>(count_);
    return {Count(what, count_), Loss(loss_ / count, of), Accuracy(correct_ / count)};
  }

 private:
  double loss_ = 0, correct_ = 0;
  int64_t count_ = 0;
};

}  // namespace

absl::StatusOr<Figures> EvaluateTextClassifier(OpenedBert bert, const EvaluateFlags& flags) {
  const BertEncoderOptions options = {.truncate = flags.truncate, .batch = flags.batch, .threads = flags.threads};
  const absl::StatusOr<std::unique_ptr<BertEncoder>> encoder = TextClassifier(std::move(bert), options);
  if (!encoder.ok()) return UsageError(encoder.status());
  Score score;
  for (const std::string& path : flags.files) {
    const absl::StatusOr<LabelledText> text = ReadLabelledText(path);
    if (!text.ok()) return UsageError(text.status());
    WEFT_ASSIGN_OR_RETURN(const std::vector<int32_t> labels, LabelIds(*text, (*encoder)->labels()));
    std::vector<std::vector<int32_t>> texts;
    for (size_t i = 0; i < labels.size(); ++i) {
      absl::StatusOr<std::vector<int32_t>> ids = (*encoder)->Tokens(text->text.lines[i]);
      if (!ids.ok()) return Annotate(ids.status(), text->text.Place(i));
      texts.push_back(*std::move(ids));
    }
    const absl::StatusOr<std::vector<std::vector<float>>> logits = (*encoder)->Run(texts);
    if (!logits.ok()) return Failure(logits.status());
    for (size_t i = 0; i < labels.size(); ++i) score.Add((*logits)[i], labels[i]);
  }
  return score.figures("texts", "text");
}

absl::StatusOr<Figures> EvaluateVit(const EvaluateFlags& flags) {
  if (!flags.labels.empty() && flags.files.size() > 1) {
    return absl::InvalidArgumentError("--labels is of one file of pictures, but there are several");
  }
  const auto classifier = PictureClassifier::Open(flags.model, {.batch = flags.batch, .threads = flags.threads});
  if (!classifier.ok()) return UsageError(classifier.status());
  const int64_t classes = (*classifier)->config().classes;
  Score score;
  for (const std::string& path : flags.files) {
    const absl::StatusOr<Images> images = ReadImages(path, flags.labels);
    if (!images.ok()) return UsageError(images.status());
    for (const int32_t label : images->labels) {
      if (label < classes) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": the label ", label, " is none of the model's ", classes, " classes"));
    }
    WEFT_ASSIGN_OR_RETURN(const std::vector<std::vector<float>> logits, (*classifier)->Run(*images));
    for (size_t i = 0; i < logits.size(); ++i) score.Add(logits[i], images->labels[i]);
  }
  return score.figures("pictures", "picture");
}

}  // namespace weft
