#include "weft/inference/classifier.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>

#include "absl/strings/str_cat.h"
#include "weft/core/status.h"
#include "weft/formats/images.h"
#include "weft/formats/model_formats.h"
#include "weft/formats/weights.h"
#include "weft/inference/picture_classifier.h"
#include "weft/inference/sampling.h"
#include "weft/text/labelled_text.h"
#include "weft/text/lines.h"

namespace weft {
namespace {

// Sums the losses of examples.
class LossSum {
 public:
  void Add(absl::Span<const std::vector<float>> logits, absl::Span<const int32_t> labels) {
    for (size_t i = 0; i < logits.size(); ++i) {
      const auto highest = std::max_element(logits[i].begin(), logits[i].end());
      const double max = *highest;
      double sum = 0;
      for (const float logit : logits[i]) sum += std::exp(logit - max);
      loss_ += max + std::log(sum) - logits[i][static_cast<size_t>(labels[i])];
      correct_ += highest - logits[i].begin() == labels[i] ? 1 : 0;
      ++count_;
    }
  }

  ClassScore score() const {
    const auto count = static_cast<double>(count_);
    return {.count = count_, .loss = loss_ / count, .accuracy = correct_ / count};
  }

 private:
  double loss_ = 0, correct_ = 0;
  int64_t count_ = 0;
};

class TextClassifier : public Classifier {
 public:
  TextClassifier(std::vector<std::string> labels, std::unique_ptr<BertEncoder> encoder, int64_t batch)
      : Classifier(std::move(labels)),
        encoder_(std::move(encoder)),
        lines_at_once_(kBatchesAtOnce * static_cast<size_t>(batch)) {}

  absl::string_view example() const override { return "text"; }

  absl::Status Classify(const std::vector<std::string>& files, Take take) override {
    const auto run = [&](const TextLines&, absl::Span<const TokenIds> texts) -> absl::Status {
      WEFT_ASSIGN_OR_RETURN(const std::vector<std::vector<float>> logits, encoder_->Run(texts));
      take(logits);
      return absl::OkStatus();
    };
    return EncodeLines(files, lines_at_once_, encode_, run);
  }

  absl::StatusOr<ClassScore> Evaluate(const std::vector<std::string>& files, const std::string& /*labels*/) override {
    std::vector<TokenIds> texts;
    std::vector<int32_t> classes;
    for (const std::string& path : files) {
      WEFT_ASSIGN_OR_RETURN(const LabelledText text, ReadLabelledText(path));
      WEFT_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, LabelIds(text, labels()));
      classes.insert(classes.end(), ids.begin(), ids.end());
      WEFT_ASSIGN_OR_RETURN(const std::vector<TokenIds> encoded, EncodeAll(text.text, encode_));
      texts.insert(texts.end(), encoded.begin(), encoded.end());
    }
    WEFT_ASSIGN_OR_RETURN(const std::vector<std::vector<float>> logits, encoder_->Run(texts));
    LossSum sum;
    sum.Add(logits, classes);
    return sum.score();
  }

 private:
  const std::unique_ptr<BertEncoder> encoder_;
  const std::function<absl::StatusOr<TokenIds>(absl::string_view)> encode_ = [this](absl::string_view line) {
    return encoder_->Tokens(line);
  };
  const size_t lines_at_once_;
};

class PictureFileClassifier : public Classifier {
 public:
  explicit PictureFileClassifier(std::unique_ptr<PictureClassifier> pictures)
      : Classifier(pictures->labels()), pictures_(std::move(pictures)) {}

  absl::string_view example() const override { return "picture"; }

  absl::Status Classify(const std::vector<std::string>& files, Take take) override {
    if (files.empty()) return absl::InvalidArgumentError("a ViT classifies pictures: name a file of them");
    const VitConfig& config = pictures_->config();
    for (const std::string& path : files) {
      WEFT_ASSIGN_OR_RETURN(const Images images, ReadUnlabelledImages(path, config.image_height, config.image_width));
      WEFT_ASSIGN_OR_RETURN(const std::vector<std::vector<float>> logits, pictures_->Run(images));
      take(logits);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<ClassScore> Evaluate(const std::vector<std::string>& files, const std::string& labels) override {
    if (!labels.empty() && files.size() > 1) {
      return absl::InvalidArgumentError("labels: they are of one file of pictures, but there are several");
    }
    LossSum sum;
    for (const std::string& path : files) {
      WEFT_ASSIGN_OR_RETURN(const Images images, ReadImages(path, labels));
      const int64_t classes = pictures_->config().classes;
      for (const int32_t label : images.labels) {
        if (label < classes) continue;
        return absl::InvalidArgumentError(
            absl::StrCat(path, ": the label ", label, " is none of the model's ", classes, " classes"));
      }
      WEFT_ASSIGN_OR_RETURN(const std::vector<std::vector<float>> logits, pictures_->Run(images));
      sum.Add(logits, images.labels);
    }
    return sum.score();
  }

 private:
  const std::unique_ptr<PictureClassifier> pictures_;
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

absl::StatusOr<std::unique_ptr<Classifier>> OpenClassifier(const std::string& path, const ClassifierOptions& options) {
  WEFT_ASSIGN_OR_RETURN(const ModelFamily* const family, FindFamily(path));
  if (family == &PublishedVit::kFamily) {
    WEFT_ASSIGN_OR_RETURN(auto pictures,
                          PictureClassifier::Open(path, {.batch = options.batch, .threads = options.threads}));
    return std::make_unique<PictureFileClassifier>(std::move(pictures));
  }
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
