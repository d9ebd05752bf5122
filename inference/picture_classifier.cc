// The graph has a fixed batch. The last batch is filled up with zeros, and the results of these rows are dropped.
#include "weft/inference/picture_classifier.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "weft/core/status.h"

namespace weft {
PictureClassifier::PictureClassifier(const PublishedVit& vit, int64_t batch)
    : Classifier(vit.labels, vit.scores, TextTask::kSequence), config_(vit.config), batch_(batch) {
  input_ = graph_.tape.Input("images", {kF32, {batch, config_.image_height, config_.image_width, 1}});
  logits_ = Vit(config_).Logits(input_);
}

absl::StatusOr<std::unique_ptr<PictureClassifier>> PictureClassifier::Open(const std::string& path,
                                                                           const ClassifierOptions& options) {
  WEFT_ASSIGN_OR_RETURN(const PublishedModel model, ReadModel(path));
  const auto* const vit = std::get_if<PublishedVit>(&model);
  if (vit == nullptr) return InvalidArgument(path, ": the model is not a ViT");
  if (vit->task != VitTask::kClassify) {
    return InvalidArgument(path,
                           ": the model was trained with --task=", vit->task == VitTask::kMasked ? "masked" : "order",
                           " and has no classifier; weft train vit --init=", path, " adds one");
  }
  WEFT_RETURN_IF_ERROR(CheckOneChannel(path, vit->config));
  auto classifier = std::unique_ptr<PictureClassifier>(new PictureClassifier(*vit, options.runtime.batch));
  WEFT_ASSIGN_OR_RETURN(classifier->scale_, ReadPixelScale(path));
  WEFT_RETURN_IF_ERROR(ProvideFiniteWeights(path, vit->weights, &classifier->parameters_));
  WEFT_RETURN_IF_ERROR(classifier->graph_.Compile({.fetch = {classifier->logits_}},
                                                  options.runtime.For(vit->weights.dtype()), &classifier->parameters_));
  return classifier;
}

absl::StatusOr<std::vector<std::vector<float>>> PictureClassifier::Run(const Images& images) {
  WEFT_RETURN_IF_ERROR(CheckSize(images, config_));
  const auto each = static_cast<size_t>(images.pixels_each()), classes = static_cast<size_t>(config_.classes);
  std::vector<std::vector<float>> results;
  std::vector<float> pixels;
  for (int64_t begin = 0; begin < images.size(); begin += batch_) {
    const int64_t end = std::min(begin + batch_, images.size());
    pixels.assign(static_cast<size_t>(batch_) * each, 0);
    auto to = pixels.begin();
    for (int64_t i = begin; i < end; ++i) {
      for (const float pixel : images[i]) *to++ = scale_(pixel);
    }
    WEFT_ASSIGN_OR_RETURN(const Outputs out, graph_.Run({{input_, pixels}}));
    const absl::Span<const float> all = out[logits_].span<const float>();
    for (int64_t i = begin; i < end; ++i) {
      const absl::Span<const float> row = all.subspan(static_cast<size_t>(i - begin) * classes, classes);
      results.emplace_back(row.begin(), row.end());
    }
  }
  return results;
}

absl::Status PictureClassifier::Classify(const std::vector<std::string>& files, Take take) {
  if (files.empty()) return InvalidArgument("a ViT classifies pictures: name a file of them");
  for (const std::string& path : files) {
    WEFT_ASSIGN_OR_RETURN(const Images images, ReadUnlabelledImages(path, config_.image_height, config_.image_width));
    WEFT_ASSIGN_OR_RETURN(std::vector<std::vector<float>> logits, Run(images));
    std::vector<ClassifierResult> results;
    for (std::vector<float>& each : logits) results.push_back({.words = {}, .values = {std::move(each)}});
    take(results);
  }
  return absl::OkStatus();
}

absl::StatusOr<ClassScore> PictureClassifier::Evaluate(const std::vector<std::string>& files,
                                                       const std::string& labels) {
  WEFT_RETURN_IF_ERROR(CheckOneLabel(scores()));
  if (!labels.empty() && files.size() > 1) {
    return InvalidArgument("labels: they are of one file of pictures, but there are several");
  }
  std::vector<std::vector<float>> logits;
  std::vector<int32_t> classes;
  for (const std::string& path : files) {
    WEFT_ASSIGN_OR_RETURN(const Images images, ReadImages(path, labels));
    for (const int32_t label : images.labels) {
      if (label < config_.classes) continue;
      return InvalidArgument(path, ": the label ", label, " is none of the model's ", config_.classes, " classes");
    }
    WEFT_ASSIGN_OR_RETURN(const std::vector<std::vector<float>> more, Run(images));
    logits.insert(logits.end(), more.begin(), more.end());
    classes.insert(classes.end(), images.labels.begin(), images.labels.end());
  }
  return ScoreClasses(logits, classes);
}

}  // namespace weft
