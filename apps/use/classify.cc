// `weft classify`: prints the class of each text or picture.
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "weft/apps/commands.h"
#include "weft/apps/flags.h"
#include "weft/apps/streams.h"
#include "weft/base/json.h"
#include "weft/base/status.h"
#include "weft/inference/encode/classifier.h"

namespace weft {
namespace {

struct ClassifyFlags : ModelFlags {
  bool scores = false;
  BertEncoderOptions options;
};

Hyperparameters Table(ClassifyFlags* flags) {
  BertEncoderOptions& options = flags->options;
  return {
      ModelRow("a run of weft train classify or vit, or a folder of weft quantize or Hugging Face of a BERT with a "
               "classifier or of a ViT",
               &flags->model),
      {"scores",
       "print JSON, one value a line: all labels with their probabilities or, of each word, the most likely one",
       &flags->scores,
       {.group = "Output"}},
      {"pairs",
       "each line is a text, a tab and a second text; needed for models of pairs that are no runs of Weft",
       &options.pairs,
       {.group = "Data"}},
      TruncateRow(&options.truncate, "texts"),
      SpecialTokensRow(&options.special_tokens, "Data"),
      BatchRow("maximum number of texts or pictures classified at once", &options.runtime.batch),
      WeightsRow(&options.runtime.weights),
      ThreadsRow(&options.runtime.threads),
  };
}

// Prints the first label, a tab and its probability or, with `scores`, all labels and probabilities as a JSON object. A
// regression prints its numbers instead, in the order of the labels and with tabs between.
void Print(absl::Span<const float> logits, const std::vector<std::string>& labels, LabelScores kind, bool scores) {
  const std::vector<LabelProbability> ranked = RankLabels(labels, logits, kind);
  if (!scores && kind == LabelScores::kNumbers) {
    const auto number = [](std::string* out, float value) { absl::StrAppendFormat(out, "%.7g", value); };
    std::printf("%s\n", absl::StrJoin(logits, "\t", number).c_str());
    return;
  }
  if (!scores) {
    std::printf("%s\t%.6f\n", Printable(ranked[0].label).c_str(), ranked[0].probability);
    return;
  }
  std::string line;
  for (const auto& [label, probability, id] : ranked) {  // labels of the same name get their ids
    const std::string key = absl::c_count(labels, label) > 1 ? absl::StrCat(label, " (", id, ")") : label;
    absl::StrAppendFormat(&line, "%s%s:%.7g", line.empty() ? "{" : ",", JsonLine(key), probability);
  }
  std::printf("%s}\n", line.c_str());
}

// Prints each word, a tab and its label, and an empty line after the sentence. With `scores`, prints the sentence as a
// JSON array. A word that the model did not read has the label "_".
void PrintWords(const ClassifierResult& sentence, const std::vector<std::string>& labels, bool scores) {
  auto json = nlohmann::ordered_json::array();
  for (size_t i = 0; i < sentence.words.size(); ++i) {
    const std::vector<float>& logits = sentence.values[i];
    const LabelProbability best = logits.empty() ? LabelProbability{"_", 0, -1} : RankLabels(labels, logits)[0];
    const std::string line = absl::StrCat(sentence.words[i], "\t", Printable(best.label), "\n");
    if (!scores) std::fwrite(line.data(), 1, line.size(), stdout);  // a word may have a NUL
    json.push_back({{"word", sentence.words[i]}, {"label", best.label}, {"score", best.probability}});
  }
  std::printf("%s\n", scores ? JsonLine(json).c_str() : "");
}

absl::Status Classify(ClassifyFlags flags) {
  PrintMemoryNote(flags.model);
  const auto opened = OpenClassifier(flags.model, flags.options);
  if (absl::IsUnimplemented(opened.status())) {
    return InvalidArgument(opened.status().message(), "; weft train classify --init=", flags.model, " adds one");
  }
  if (!opened.ok()) return UsageError(opened.status());
  Classifier& classifier = **opened;
  const bool pictures = classifier.example() == "picture";
  if (pictures) {
    WEFT_RETURN_IF_ERROR(
        CheckNotGiven(flags.given, {"truncate", "pairs", "special-tokens"}, " has no use in classifying pictures"));
    for (std::string& file : flags.files) file = InputPath(file);  // a file of pictures is read whole
  }
  const absl::Status status = classifier.Classify(flags.files, [&](absl::Span<const ClassifierResult> results) {
    for (const ClassifierResult& result : results) {
      if (classifier.task() == TextTask::kTokens) {
        PrintWords(result, classifier.labels(), flags.scores);
      } else {
        Print(result.values[0], classifier.labels(), classifier.scores(), flags.scores);
      }
    }
    if (!pictures && ReadsStandardInput(flags.files)) std::fflush(stdout);
  });
  return pictures ? UsageError(status) : InputError(status, flags.files);
}

}  // namespace

Command ClassifyCommand(CLI::App* weft, const std::string& name) {
  return MakeCommand(
      weft, name,
      {"Prints the most likely label of each line of text, a tab and its probability. A model of pairs gets lines of a "
       "text, a tab and a second text. A model that labels words prints each word, a tab and its label, and an empty "
       "line after each line of text; a regression prints its numbers. With a ViT, the files have pictures, as PNG, "
       "JPEG, CSV of their pixels or MNIST's IDX, and each picture gets a label; a label after the pixels is ignored.",
       "prints the most likely label of each line of text or image",
       {{"Prints all labels of one text with their probabilities.",
         "echo 'A good film.' | weft classify --model=runs/classify-1 --scores"},
        {"Prints the most likely label of each picture.", "weft classify --model=runs/vit-1 digits.csv"}}},
      std::make_shared<ClassifyFlags>(), Table, Classify, &ClassifyFlags::files);
}

}  // namespace weft
