// `weft classify`: prints the class of each text or picture.
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
#include "weft/apps/memory_note.h"
#include "weft/core/json.h"
#include "weft/core/status.h"
#include "weft/formats/model_formats.h"
#include "weft/inference/classifier.h"
#include "weft/inference/open_model.h"
#include "weft/inference/text_head.h"

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
       "a run of weft train classify or vit, or a folder of weft quantize or Hugging Face of a BERT with a classifier "
       "or "
       "of a ViT",
       &flags->model,
       {.group = "Model", .type = "MODEL", .required = true}},
      {"scores",
       "print JSON, one value a line: all labels with their probabilities or, of each word, the most likely one",
       &flags->scores,
       {.group = "Output"}},
      {"pairs",
       "each line is a text, a tab and a second text; needed for models of pairs that are no runs of Weft",
       &options.pairs,
       {.group = "Data"}},
      {"truncate",
       "cut texts that are longer than the model's context, instead of failing",
       &options.truncate,
       {.group = "Data"}},
      {"batch",
       "maximum number of texts or pictures classified at once",
       &options.batch,
       {.low = 1, .high = 4096, .group = "Run"}},
      WeightsRow(&options.weights),
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

// Prints each word, a tab and its label, and an empty line after the sentence. With `scores`, prints the sentence as a
// JSON array. A word that the model did not read has the label "_".
void PrintWords(const HeadResult& sentence, const std::vector<std::string>& labels, bool scores) {
  auto json = nlohmann::ordered_json::array();
  for (size_t i = 0; i < sentence.words.size(); ++i) {
    const std::vector<float>& logits = sentence.values[i];
    const LabelProbability best = logits.empty() ? LabelProbability{"_", 0} : RankLabels(labels, logits)[0];
    if (!scores) std::printf("%s\t%s\n", sentence.words[i].c_str(), best.label.c_str());
    json.push_back({{"word", sentence.words[i]}, {"label", best.label}, {"score", best.probability}});
  }
  std::printf("%s\n", scores ? JsonLine(json).c_str() : "");
}

// Labels the words of each line or, for a regression, prints the number of each text.
absl::Status RunHead(TextHead* head, const ClassifyFlags& flags) {
  const auto print = [&](absl::Span<const HeadResult> results) {
    for (const HeadResult& result : results) {
      if (head->task() == TextTask::kTokens) {
        PrintWords(result, head->labels(), flags.scores);
      } else if (flags.scores) {
        std::printf("{%s:%.7g}\n", nlohmann::json(head->labels()[0]).dump().c_str(),
                    static_cast<double>(result.values[0][0]));
      } else {
        std::printf("%.7g\n", static_cast<double>(result.values[0][0]));
      }
    }
    if (ReadsStandardInput(flags.files)) std::fflush(stdout);
  };
  return InputError(head->Run(flags.files, print), flags.files);
}

absl::Status Classify(ClassifyFlags flags) {
  WEFT_RETURN_IF_ERROR(SetFromFlags(flags.given, Table(&flags)));
  if (flags.model.empty()) return InvalidArgument("--model=DIR is missing");
  PrintMemoryNote(flags.model);
  WEFT_ASSIGN_OR_RETURN(const ModelFamily* const family, UsageError(FindFamily(flags.model)));
  absl::StatusOr<std::unique_ptr<Classifier>> opened;
  if (family == &PublishedBert::kFamily) {
    WEFT_ASSIGN_OR_RETURN(OpenedBert bert, UsageError(OpenBert(flags.model)));
    const TextTask task = bert.model.task;
    if (task == TextTask::kTokens || task == TextTask::kRegression) {
      WEFT_ASSIGN_OR_RETURN(const auto head, UsageError(TextHead::Create(std::move(bert), flags.options)));
      return RunHead(head.get(), flags);
    }
    opened = ClassifierOf(std::move(bert), flags.options);
  } else {
    opened = OpenClassifier(flags.model, flags.options);
  }
  if (absl::IsUnimplemented(opened.status())) {
    return InvalidArgument(opened.status().message(), "; weft train classify --init=", flags.model, " adds one");
  }
  if (!opened.ok()) return UsageError(opened.status());
  Classifier& classifier = **opened;
  const bool texts = classifier.example() != "picture";
  if ((flags.options.truncate || flags.options.pairs) && !texts) {
    return InvalidArgument("--", flags.options.truncate ? "truncate" : "pairs", " has no use in classifying pictures");
  }
  if (!texts) {
    for (std::string& file : flags.files) file = InputPath(file);  // a file of pictures is read whole
  }
  const auto print = [&](absl::Span<const std::vector<float>> logits) {
    for (const std::vector<float>& each : logits) Print(classifier.Rank(each), flags.scores);
    if (ReadsStandardInput(flags.files)) std::fflush(stdout);
  };
  const absl::Status status = classifier.Classify(flags.files, print);
  return texts ? InputError(status, flags.files) : UsageError(status);
}

}  // namespace

Command ClassifyCommand(CLI::App* weft) {
  auto flags = std::make_shared<ClassifyFlags>();
  CLI::App* app = AddCommand(
      weft, "classify",
      "Prints the most likely label of each line of text, a tab and its probability. A model of pairs gets lines of a "
      "text, a tab and a second text. A model that labels words prints each word, a tab and its label, and an empty "
      "line after each line of text; a regression prints a number a line. With a ViT, the files have "
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
