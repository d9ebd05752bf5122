// `weft evaluate` measures a model on data and prints figures, such as loss or BLEU, that depend on the model's family.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "weft/apps/commands.h"
#include "weft/apps/flags.h"
#include "weft/apps/lines.h"
#include "weft/core/status.h"
#include "weft/formats/model_formats.h"
#include "weft/inference/classifier.h"
#include "weft/inference/evaluation.h"
#include "weft/inference/line_translator.h"
#include "weft/inference/open_model.h"
#include "weft/text/bleu.h"
#include "weft/text/lines.h"
#include "weft/text/sentence_pairs.h"

namespace weft {
namespace {

struct EvaluateFlags {
  std::string model, tokenizer, labels, source, references, translations;
  double masked = 0.15;
  uint64_t seed = 1;
  int64_t beam = 4, batch = 32, threads = 0;
  bool lowercase = false, truncate = false, json = false;
  std::vector<std::string> files;
  GivenFlags given;
};

Hyperparameters Table(EvaluateFlags* flags) {
  return {
      {"model", "a run of weft train, or a published model", &flags->model, {.type = "MODEL"}},
      {"tokenizer",
       "for a GPT: tokenizer to use instead of the model's",
       &flags->tokenizer,
       {.type = "FILE_OR_FOLDER"}},
      {"masked", "for a BERT: fraction of the tokens that are masked", &flags->masked, {.low = 0.001, .high = 1}},
      {"seed", "for a BERT: seed for choosing the masked tokens", &flags->seed},
      {"labels", "for a ViT: the file of labels that IDX needs", &flags->labels, {.type = "FILE"}},
      {"source", "for a Transformer: the file to translate, a sentence a line", &flags->source, {.type = "FILE"}},
      {"references",
       "for a Transformer: the file of reference translations of the source's lines",
       &flags->references,
       {.type = "FILE"}},
      {"translations",
       "finished translations, to compare with --references without a model",
       &flags->translations,
       {.type = "FILE"}},
      {"beam",
       "for a Transformer: number of hypotheses of beam search; 1: greedy",
       &flags->beam,
       {.low = 1, .high = 1024}},
      {"lowercase", "ignore case when translations are compared", &flags->lowercase},
      {"truncate", "cut lines that are longer than the model's context, instead of failing", &flags->truncate},
      {"batch",
       "maximum number of examples computed at once; the figures do not depend on it",
       &flags->batch,
       {.low = 1, .high = 4096}},
      {"json", "print one JSON object", &flags->json},
      {"threads", "number of threads; 0: one for each core", &flags->threads, {.low = 0, .high = 1024}},
  };
}

struct Figure {
  std::string name;  // the figure's key in JSON
  nlohmann::ordered_json value;
  std::string text;  // the figure as text; empty: printed in JSON only
};
using Figures = std::vector<Figure>;

Figure Count(const std::string& name, int64_t count) { return {name, count, absl::StrCat(count)}; }
Figure Loss(double loss, const std::string& unit) {
  return {"loss", loss, absl::StrFormat("%.6f nats a %s", loss, unit)};
}
Figure Number(const std::string& name, double value, int digits) {
  return {name, value, absl::StrFormat("%.*f", digits, value)};
}

Figures ClassFigures(const ClassScore& score, const std::string& count, const std::string& unit) {
  return {Count(count, score.count),
          Loss(score.loss, unit),
          {"accuracy", score.accuracy, absl::StrFormat("%.2f %%", 100 * score.accuracy)}};
}

absl::Status NoUse(const std::string& flag, const std::string& subject) {
  return InvalidArgument("--", flag, " has no use in evaluating ", subject);
}

absl::StatusOr<Figures> MeasureGpt(const EvaluateFlags& flags) {
  WEFT_ASSIGN_OR_RETURN(const OpenedGpt gpt, UsageError(OpenGpt(flags.model, flags.tokenizer)));
  WEFT_ASSIGN_OR_RETURN(const LanguageModelScore score, UsageError(EvaluateGpt(gpt, flags.files, flags.threads)));
  return Figures{Count("tokens", score.tokens), Loss(score.loss, "token"), Number("perplexity", score.perplexity, 4),
                 Number("bits_per_byte", score.bits_per_byte, 6), Count("bytes", score.bytes)};
}

ClassifierOptions OptionsOf(const EvaluateFlags& flags) {
  return {.truncate = flags.truncate, .batch = flags.batch, .threads = flags.threads};
}

absl::StatusOr<Figures> MeasureClassifier(Classifier* classifier, const EvaluateFlags& flags) {
  WEFT_ASSIGN_OR_RETURN(const ClassScore score, UsageError(classifier->Evaluate(flags.files, flags.labels)));
  const std::string example(classifier->example());
  return ClassFigures(score, example + "s", example);
}

absl::StatusOr<Figures> MeasureVit(const EvaluateFlags& flags) {
  WEFT_ASSIGN_OR_RETURN(const auto classifier, UsageError(OpenClassifier(flags.model, OptionsOf(flags))));
  return MeasureClassifier(classifier.get(), flags);
}

absl::StatusOr<Figures> MeasureBert(const EvaluateFlags& flags) {
  WEFT_ASSIGN_OR_RETURN(OpenedBert bert, UsageError(OpenBert(flags.model)));
  const auto given = [&](const char* flag) { return flags.given.count(flag) > 0; };
  if (!bert.model.labels.empty()) {
    for (const char* flag : {"masked", "seed"}) {
      if (given(flag)) return NoUse(flag, "a BERT with a classifier");
    }
    WEFT_ASSIGN_OR_RETURN(const auto classifier, UsageError(ClassifierOf(std::move(bert), OptionsOf(flags))));
    return MeasureClassifier(classifier.get(), flags);
  }
  if (given("truncate")) return NoUse("truncate", "a BERT that guesses masked tokens");
  const MaskedTokensOptions options = {
      .fraction = flags.masked, .seed = flags.seed, .batch = flags.batch, .threads = flags.threads};
  WEFT_ASSIGN_OR_RETURN(const ClassScore score, UsageError(EvaluateMaskedTokens(bert, flags.files, options)));
  return ClassFigures(score, "masked_tokens", "masked token");
}

absl::StatusOr<Figures> BleuFigures(const EvaluateFlags& flags, absl::Span<const std::string> translations,
                                    absl::Span<const std::string> references) {
  const BleuOptions options = {.lowercase = flags.lowercase};
  WEFT_ASSIGN_OR_RETURN(const BleuScore bleu, CorpusBleu(translations, references, options));
  const std::string signature = BleuSignature(options);
  return Figures{
      Count("lines", static_cast<int64_t>(translations.size())),
      {"bleu", bleu.score, bleu.ToString().substr(std::string("BLEU = ").size())},
      {"precisions", bleu.precisions, ""},
      {"brevity_penalty", bleu.brevity_penalty, ""},
      {"translation_length", bleu.translation_length, ""},
      {"reference_length", bleu.reference_length, ""},
      {"signature", signature, signature},
  };
}

absl::StatusOr<Figures> MeasureTranslations(const EvaluateFlags& flags) {
  WEFT_ASSIGN_OR_RETURN(const ParallelText text, UsageError(ReadParallelText(flags.translations, flags.references)));
  return BleuFigures(flags, text.source.lines, text.target.lines);
}

absl::StatusOr<Figures> MeasureTransformer(const EvaluateFlags& flags) {
  WEFT_ASSIGN_OR_RETURN(const ParallelText text, UsageError(ReadParallelText(flags.source, flags.references)));
  const LineTranslatorOptions options = {
      .translate = {{.beam = flags.beam}}, .truncate = flags.truncate, .batch = flags.batch, .threads = flags.threads};
  WEFT_ASSIGN_OR_RETURN(const auto translator, UsageError(LineTranslator::Open(flags.model, options)));
  const auto encode = [&](absl::string_view line) { return translator->Encode(line); };
  WEFT_ASSIGN_OR_RETURN(const std::vector<TokenIds> sources, UsageError(EncodeAll(text.source, encode)));
  WEFT_ASSIGN_OR_RETURN(const std::vector<std::string> lines, Failure(translator->TranslateToText(sources)));
  return BleuFigures(flags, lines, text.target.lines);
}

// One kind of evaluation: the family of models, the flags that it uses, and the function that computes its figures.
struct Subject {
  const ModelFamily* family;  // null: evaluates finished translations without a model
  const char* name;
  std::vector<std::string> flags;  // flags that it uses, in addition to --model, --json and --threads
  bool takes_files;                // true: arguments name its data; false: flags do
  absl::StatusOr<Figures> (*measure)(const EvaluateFlags& flags);
};

// Returns the subject for models of `family`, or for translations if it is null. Returns null if `weft evaluate` has no
// measure for the family.
const Subject* FindSubject(const ModelFamily* family) {
  static const Subject kSubjects[] = {
      {&PublishedGpt::kFamily, "a GPT", {"tokenizer"}, true, MeasureGpt},
      {&PublishedBert::kFamily, "a BERT", {"masked", "seed", "truncate", "batch"}, true, MeasureBert},
      {&PublishedVit::kFamily, "a ViT", {"labels", "batch"}, true, MeasureVit},
      {&PublishedTransformer::kFamily,
       "a Transformer",
       {"source", "references", "beam", "lowercase", "truncate", "batch"},
       false,
       MeasureTransformer},
      {nullptr, "translations", {"translations", "references", "lowercase"}, false, MeasureTranslations},
  };
  const auto found = absl::c_find_if(kSubjects, [&](const Subject& subject) { return subject.family == family; });
  return found != std::end(kSubjects) ? found : nullptr;
}

// Checks that the command line has the flags and files that `subject` needs, and none that `subject` does not use.
absl::Status CheckFlags(const EvaluateFlags& flags, const Subject& subject) {
  for (const auto& [flag, value] : flags.given) {
    if (flag == "model" || flag == "json" || flag == "threads" || absl::c_linear_search(subject.flags, flag)) continue;
    return NoUse(flag, subject.name);
  }
  for (const char* flag : {"source", "references"}) {
    if (!absl::c_linear_search(subject.flags, flag) || flags.given.count(flag) > 0) continue;
    return InvalidArgument("--", flag, "=FILE is missing, to evaluate ", subject.name);
  }
  if (subject.takes_files != flags.files.empty()) return absl::OkStatus();
  return InvalidArgument(subject.takes_files ? absl::StrCat("to evaluate ", subject.name, ", name a file of data")
                                             : absl::StrCat("the file ", flags.files[0], " has no use in evaluating ",
                                                            subject.name, ", whose data are flags"));
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
  const ModelFamily* family = nullptr;
  if (!flags.model.empty()) {
    WEFT_ASSIGN_OR_RETURN(family, UsageError(FindFamily(flags.model)));
  } else if (flags.translations.empty()) {
    return InvalidArgument("--model=DIR is missing, or --translations=FILE and --references=FILE");
  }
  const Subject* const subject = FindSubject(family);
  if (subject == nullptr) {
    return UsageError(
        InvalidArgument("--model: ", flags.model, " is ", family->name, ", which evaluate can't measure"));
  }
  WEFT_RETURN_IF_ERROR(CheckFlags(flags, *subject));
  WEFT_ASSIGN_OR_RETURN(const Figures figures, subject->measure(flags));
  Print(figures, flags.json);
  return absl::OkStatus();
}

}  // namespace

Command EvaluateCommand(CLI::App* weft) {
  auto flags = std::make_shared<EvaluateFlags>();
  CLI::App* app = AddCommand(
      weft, "evaluate",
      "Measures a model on data. A GPT gets texts, and the figures are loss, perplexity and bits per byte. Texts are "
      "cut into windows of the context's length, and each token is predicted from the tokens before it in its window. "
      "A BERT gets texts, cut into such windows, and the figures are loss and accuracy of masked tokens. A BERT with a "
      "classifier gets lines \"text<TAB>label\" and a ViT gets pictures with labels; the figures are loss and "
      "accuracy. A Transformer gets --source and --references, and the figure is BLEU.");
  AddFlags(app, Table(flags.get()), &flags->given);
  AddFiles(app, &flags->files);
  return {"weft evaluate",
          app,
          [flags] { return Evaluate(*flags); },
          "measures loss, accuracy or BLEU on data",
          {
              {"Measures a GPT on a text.", "weft evaluate --model=runs/gpt-1 book.txt"},
              {"Computes the BLEU score of finished translations.",
               "weft evaluate --translations=output.txt --references=de.txt"},
          }};
}

}  // namespace weft
