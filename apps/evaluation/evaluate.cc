#include "weft/apps/evaluation/evaluate.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "weft/apps/commands.h"
#include "weft/apps/lines.h"
#include "weft/core/status.h"
#include "weft/formats/open_published.h"

namespace weft {
namespace {

Hyperparameters Table(EvaluateFlags* flags) {
  return {
      {"model", "a run of weft train, or a published model as the other commands take it", &flags->model},
      {"tokenizer", "of a GPT, another than the model's", &flags->tokenizer},
      {"masked", "of a BERT, the part of the tokens that are to be guessed", &flags->masked, {.low = 0.001, .high = 1}},
      {"seed", "of a BERT, what the choice of those tokens depends on", &flags->seed},
      {"labels", "of a ViT, for IDX, the file of labels", &flags->labels},
      {"source", "of a Transformer, what to translate, a sentence a line", &flags->source},
      {"references", "the translations of the source's lines that are to be met", &flags->references},
      {"translations", "finished translations, to compare with --references without a model", &flags->translations},
      {"beam",
       "of a Transformer, translations that are followed at once; 1: greedy",
       &flags->beam,
       {.low = 1, .high = 1024}},
      {"lowercase", "compare translations without regard to case", &flags->lowercase},
      {"truncate", "cut lines that are longer than the model's context, which are errors else", &flags->truncate},
      {"batch",
       "the most examples of one run; the figures don't depend on it",
       &flags->batch,
       {.low = 1, .high = 4096}},
      {"json", "print one JSON object", &flags->json},
      {"threads", "threads to compute with; 0: one a core", &flags->threads, {.low = 0, .high = 1024}},
  };
}

struct Kind {
  std::optional<ModelKind> model;  // none: without a model
  const char* name;
  std::vector<std::string> flags;  // that it has a use for, besides --model, --json and --threads
  bool files;                      // whether the data are files
  absl::StatusOr<Figures> (*evaluate)(const EvaluateFlags& flags);
};

const Kind& KindFor(std::optional<ModelKind> model) {
  static const Kind kKinds[] = {
      {ModelKind::kGpt, "a GPT", {"tokenizer"}, true, EvaluateGpt},
      {ModelKind::kBert, "a BERT", {"masked", "seed", "truncate", "batch"}, true, EvaluateBert},
      {ModelKind::kVit, "a ViT", {"labels", "batch"}, true, EvaluateVit},
      {ModelKind::kTransformer,
       "a Transformer",
       {"source", "references", "beam", "lowercase", "truncate", "batch"},
       false,
       EvaluateTransformer},
      {std::nullopt, "translations", {"translations", "references", "lowercase"}, false, EvaluateTranslations},
  };
  return *std::find_if(std::begin(kKinds), std::end(kKinds), [&](const Kind& kind) { return kind.model == model; });
}

// What the command line must have for this kind, and must not.
absl::Status CheckFlags(const EvaluateFlags& flags, const Kind& kind) {
  for (const auto& [flag, value] : flags.given) {
    if (flag == "model" || flag == "json" || flag == "threads" || absl::c_linear_search(kind.flags, flag)) continue;
    return NoUse(flag, kind.name);
  }
  for (const char* flag : {"source", "references"}) {
    if (!absl::c_linear_search(kind.flags, flag) || flags.given.count(flag) > 0) continue;
    return absl::InvalidArgumentError(absl::StrCat("--", flag, "=FILE is missing, to evaluate ", kind.name));
  }
  if (kind.files != flags.files.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(kind.files ? absl::StrCat("to evaluate ", kind.name, ", name a file of data")
                                               : absl::StrCat("the file ", flags.files[0], " has no use in evaluating ",
                                                              kind.name, ", whose data are flags"));
}

void Print(const Figures& figures, bool as_json) {
  if (as_json) {
    nlohmann::ordered_json json;
    for (const Figure& figure : figures) json[figure.name] = figure.value;
    std::printf("%s\n", json.dump().c_str());
    return;
  }
  for (const Figure& figure : figures) {
    if (!figure.text.empty()) std::printf("%-14s %s\n", figure.name.c_str(), figure.text.c_str());
  }
}

absl::Status Evaluate(EvaluateFlags flags) {
  WEFT_RETURN_IF_ERROR(SetFromFlags(flags.given, Table(&flags)));
  std::optional<ModelKind> model;
  if (!flags.model.empty()) {
    const absl::StatusOr<ModelKind> found = KindOf(flags.model);
    if (!found.ok()) return UsageError(found.status());
    model = *found;
  } else if (flags.translations.empty()) {
    return absl::InvalidArgumentError("--model=DIR is missing, or --translations=FILE and --references=FILE");
  }
  const Kind& kind = KindFor(model);
  WEFT_RETURN_IF_ERROR(CheckFlags(flags, kind));
  WEFT_ASSIGN_OR_RETURN(const Figures figures, kind.evaluate(flags));
  Print(figures, flags.json);
  return absl::OkStatus();
}

}  // namespace

absl::Status NoUse(const std::string& flag, const std::string& kind) {
  return absl::InvalidArgumentError(absl::StrCat("--", flag, " has no use in evaluating ", kind));
}

Figure Count(const std::string& name, int64_t count) { return {name, count, absl::StrCat(count)}; }

Figure Accuracy(double part) { return {"accuracy", part, absl::StrFormat("%.2f %%", 100 * part)}; }

Figure Loss(double loss, const std::string& of) { return {"loss", loss, absl::StrFormat("%.6f nats a %s", loss, of)}; }

Command EvaluateCommand(CLI::App* weft) {
  auto flags = std::make_shared<EvaluateFlags>();
  CLI::App* app = AddCommand(
      weft, "evaluate",
      "Measures a model on data. A GPT on texts: loss, perplexity and bits per byte, over windows of its context that "
      "do not overlap; a token sees those before it in its window, and the first one the beginning of a text. A BERT "
      "on texts: loss and accuracy of masked tokens, over such windows. A BERT with a classifier on lines \"a "
      "text<TAB>its label\", a ViT on pictures with labels: loss and accuracy. A Transformer on --source and "
      "--references: BLEU.");
  AddFlags(app, Table(flags.get()), &flags->given);
  AddFiles(app, &flags->files);
  return {"weft evaluate", app, [flags] { return Evaluate(*flags); }};
}

}  // namespace weft
