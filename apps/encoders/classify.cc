// `weft classify` prints the class of each text or picture.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "weft/apps/commands.h"
#include "weft/apps/flags.h"
#include "weft/apps/lines.h"
#include "weft/core/status.h"
#include "weft/formats/model_formats.h"
#include "weft/inference/picture_classifier.h"
#include "weft/inference/sampling.h"
#include "weft/inference/text_classifier.h"

namespace weft {
namespace {

struct ClassifyFlags {
  std::string model;
  bool scores = false, truncate = false;
  int64_t batch = 32, threads = 0;
  std::vector<std::string> files;
  GivenFlags given;
};

Hyperparameters Table(ClassifyFlags* flags) {
  return {
      {"model", "a run of weft train classify or vit, or a Hugging Face folder of a BERT with a classifier or of a ViT",
       &flags->model},
      {"scores", "print all labels with their probabilities, as one JSON object a line", &flags->scores},
      {"truncate", "cut texts that are longer than the model's context, instead of failing", &flags->truncate},
      {"batch", "maximum number of texts or pictures classified at once", &flags->batch, {.low = 1, .high = 4096}},
      {"threads", "number of threads; 0: one for each core", &flags->threads, {.low = 0, .high = 1024}},
  };
}

// Prints the most likely label, a tab and its probability. With `scores`, prints a JSON object of all labels instead,
// most likely first.
void Print(const std::vector<std::string>& labels, absl::Span<const float> logits, bool scores) {
  const std::vector<double> probabilities = Probabilities(logits);
  std::vector<size_t> order(labels.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return probabilities[a] > probabilities[b]; });
  if (!scores) {
    std::printf("%s\t%.6f\n", labels[order[0]].c_str(), probabilities[order[0]]);
    return;
  }
  std::string line;
  for (const size_t i : order) {
    absl::StrAppendFormat(&line, "%s%s:%.7g", line.empty() ? "{" : ",", nlohmann::json(labels[i]).dump(),
                          probabilities[i]);
  }
  std::printf("%s}\n", line.c_str());
}

absl::Status ClassifyTexts(const ClassifyFlags& flags) {
  absl::StatusOr<OpenedBert> bert = OpenBert(flags.model);
  if (!bert.ok()) return UsageError(bert.status());
  if (bert->model.labels.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        flags.model, ": the model has no classifier; weft train classify --init=", flags.model, " adds one"));
  }
  const BertEncoderOptions options = {.truncate = flags.truncate, .batch = flags.batch, .threads = flags.threads};
  const absl::StatusOr<std::unique_ptr<BertEncoder>> encoder = TextClassifier(*std::move(bert), options);
  if (!encoder.ok()) return UsageError(encoder.status());
  const auto encode = [&](absl::string_view line) { return (*encoder)->Tokens(line); };
  const auto print = [&](const TextLines&, absl::Span<const TokenIds> texts) -> absl::Status {
    WEFT_ASSIGN_OR_RETURN(const std::vector<std::vector<float>> logits, (*encoder)->Run(texts));
    for (const std::vector<float>& each : logits) Print((*encoder)->labels(), each, flags.scores);
    return absl::OkStatus();
  };
  return AnswerLines(flags.files, kBatchesAtOnce * static_cast<size_t>(flags.batch), encode, print);
}

absl::Status ClassifyPictures(const ClassifyFlags& flags) {
  if (flags.files.empty()) return absl::InvalidArgumentError("a ViT classifies pictures: name a file of them");
  if (flags.truncate) return absl::InvalidArgumentError("--truncate has no use in classifying pictures");
  const auto classifier = PictureClassifier::Open(flags.model, {.batch = flags.batch, .threads = flags.threads});
  if (!classifier.ok()) return UsageError(classifier.status());
  const VitConfig& config = (*classifier)->config();
  for (const std::string& path : flags.files) {
    const absl::StatusOr<Images> images = ReadUnlabelledImages(path, config.image_height, config.image_width);
    if (!images.ok()) return UsageError(images.status());
    WEFT_ASSIGN_OR_RETURN(const std::vector<std::vector<float>> logits, (*classifier)->Run(*images));
    for (const std::vector<float>& each : logits) Print((*classifier)->labels(), each, flags.scores);
  }
  return absl::OkStatus();
}

absl::Status Classify(ClassifyFlags flags) {
  WEFT_RETURN_IF_ERROR(SetFromFlags(flags.given, Table(&flags)));
  if (flags.model.empty()) return absl::InvalidArgumentError("--model=DIR is missing");
  const absl::StatusOr<const ModelFamily*> family = FindFamily(flags.model);
  if (!family.ok()) return UsageError(family.status());
  return *family == &PublishedVit::kFamily ? ClassifyPictures(flags) : ClassifyTexts(flags);
}

}  // namespace

Command ClassifyCommand(CLI::App* weft) {
  auto flags = std::make_shared<ClassifyFlags>();
  CLI::App* app = AddCommand(
      weft, "classify",
      "Prints the most likely label of each line of text, a tab and its probability. With a ViT, the files have "
      "pictures, as CSV of their pixels or as MNIST's IDX, and each picture gets a label; a label after the pixels is "
      "ignored.");
  AddFlags(app, Table(flags.get()), &flags->given);
  AddFiles(app, &flags->files);
  return {"weft classify", app, [flags] { return Classify(*flags); }};
}

}  // namespace weft
