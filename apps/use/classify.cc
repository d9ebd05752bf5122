// `weft classify`: prints the class of each text or picture.
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "weft/apps/commands.h"
#include "weft/apps/flags.h"
#include "weft/apps/lines.h"
#include "weft/core/status.h"
#include "weft/inference/classifier.h"

namespace weft {
namespace {

struct ClassifyFlags {
  std::string model;
  bool scores = false;
  ClassifierOptions options;
  std::vector<std::string> files;
  GivenFlags given;
};

Hyperparameters Table(ClassifyFlags* flags) {
  ClassifierOptions& options = flags->options;
  return {
      {"model",
       "a run of weft train classify or vit, or a Hugging Face folder of a BERT with a classifier or of a ViT",
       &flags->model,
       {.group = "Model", .type = "MODEL", .required = true}},
      {"scores",
       "print all labels with their probabilities, as one JSON object a line",
       &flags->scores,
       {.group = "Output"}},
      {"truncate",
       "cut texts that are longer than the model's context, instead of failing",
       &options.truncate,
       {.group = "Data"}},
      {"batch",
       "maximum number of texts or pictures classified at once",
       &options.batch,
       {.low = 1, .high = 4096, .group = "Run"}},
      {"threads",
       "number of threads; 0: one for each core. Results do not depend on it",
       &options.threads,
       {.low = 0, .high = 1024, .group = "Run"}},
  };
}

// Prints the first label, a tab and its probability or, with `scores`, all labels and probabilities as a JSON object.
void Print(const std::vector<LabelProbability>& ranked, bool scores) {
  if (!scores) {
    std::printf("%s\t%.6f\n", ranked[0].label.c_str(), ranked[0].probability);
    return;
  }
  std::string line;
  for (const auto& [label, probability] : ranked) {
    absl::StrAppendFormat(&line, "%s%s:%.7g", line.empty() ? "{" : ",", nlohmann::json(label).dump(), probability);
  }
  std::printf("%s}\n", line.c_str());
}

absl::Status Classify(ClassifyFlags flags) {
  WEFT_RETURN_IF_ERROR(SetFromFlags(flags.given, Table(&flags)));
  if (flags.model.empty()) return InvalidArgument("--model=DIR is missing");
  const absl::StatusOr<std::unique_ptr<Classifier>> opened = OpenClassifier(flags.model, flags.options);
  if (absl::IsUnimplemented(opened.status())) {
    return InvalidArgument(opened.status().message(), "; weft train classify --init=", flags.model, " adds one");
  }
  if (!opened.ok()) return UsageError(opened.status());
  Classifier& classifier = **opened;
  const bool texts = classifier.example() == "text";
  if (flags.options.truncate && !texts) {
    return InvalidArgument("--truncate has no use in classifying pictures");
  }
  const auto print = [&](absl::Span<const std::vector<float>> logits) {
    for (const std::vector<float>& each : logits) Print(classifier.Rank(each), flags.scores);
    if (flags.files.empty()) std::fflush(stdout);
  };
  const absl::Status status = classifier.Classify(flags.files, print);
  return texts ? InputError(status, flags.files) : UsageError(status);
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
  return {"weft classify",
          app,
          [flags] { return Classify(*flags); },
          "prints the most likely label of each line of text or image",
          {
              {"Prints all labels of one text with their probabilities.",
               "echo 'A good film.' | weft classify --model=runs/classify-1 --scores"},
              {"Prints the most likely label of each picture.", "weft classify --model=runs/vit-1 digits.csv"},
          }};
}

}  // namespace weft
