// `weft evaluate` measures a model on data. The figures depend on the model's family.
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
#include "weft/inference/evaluation.h"
#include "weft/inference/text_classifier.h"
#include "weft/text/bleu.h"
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
      {"model", "a run of weft train, or a published model", &flags->model},
      {"tokenizer", "for a GPT: tokenizer to use instead of the model's", &flags->tokenizer},
      {"masked", "for a BERT: fraction of the tokens that are masked", &flags->masked, {.low = 0.001, .high = 1}},
      {"seed", "for a BERT: seed for choosing the masked tokens", &flags->seed},
      {"labels", "for a ViT: the file of labels that IDX needs", &flags->labels},
      {"source", "for a Transformer: the file to translate, a sentence a line", &flags->source},
      {"references", "for a Transformer: the file of reference translations of the source's lines", &flags->references},
      {"translations", "finished translations, to compare with --references without a model", &flags->translations},
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

absl::StatusOr<Figures> ClassFigures(const absl::StatusOr<ClassScore>& score, const std::string& count,
                                     const std::string& unit) {
  WEFT_RETURN_IF_ERROR(score.status());
  return Figures{Count(count, score->count),
                 Loss(score->loss, unit),
                 {"accuracy", score->accuracy, absl::StrFormat("%.2f %%", 100 * score->accuracy)}};
}

absl::Status NoUse(const std::string& flag, const std::string& subject) {
  return absl::InvalidArgumentError(absl::StrCat("--", flag, " has no use in evaluating ", subject));
}

absl::StatusOr<Figures> MeasureGpt(const EvaluateFlags& flags) {
  const absl::StatusOr<OpenedGpt> gpt = OpenGpt(flags.model, flags.tokenizer);
  if (!gpt.ok()) return UsageError(gpt.status());
  const absl::StatusOr<EncodedTexts> texts = EncodeTexts(*gpt, flags.files);
  if (!texts.ok()) return UsageError(texts.status());
  const absl::StatusOr<LanguageModelScore> score = EvaluateGpt(*gpt, *texts, flags.threads);
  if (!score.ok()) return Failure(score.status());
  return Figures{Count("tokens", score->tokens), Loss(score->loss, "token"), Number("perplexity", score->perplexity, 4),
                 Number("bits_per_byte", score->bits_per_byte, 6), Count("bytes", texts->bytes)};
}

absl::StatusOr<Figures> MeasureTextClassifier(OpenedBert bert, const EvaluateFlags& flags) {
  const BertEncoderOptions options = {.truncate = flags.truncate, .batch = flags.batch, .threads = flags.threads};
  const absl::StatusOr<std::unique_ptr<BertEncoder>> encoder = TextClassifier(std::move(bert), options);
  if (!encoder.ok()) return UsageError(encoder.status());
  const absl::StatusOr<LabelledExamples> examples = ReadLabelledExamples(**encoder, flags.files);
  if (!examples.ok()) return UsageError(examples.status());
  const absl::StatusOr<ClassScore> score = EvaluateTextClassifier(encoder->get(), *examples);
  if (!score.ok()) return Failure(score.status());
  return ClassFigures(score, "texts", "text");
}

absl::StatusOr<Figures> MeasureBert(const EvaluateFlags& flags) {
  absl::StatusOr<OpenedBert> bert = OpenBert(flags.model);
  if (!bert.ok()) return UsageError(bert.status());
  if (!bert->model.labels.empty()) {
    for (const char* flag : {"masked", "seed"}) {
      if (flags.given.count(flag) > 0) return NoUse(flag, "a BERT with a classifier");
    }
    return MeasureTextClassifier(*std::move(bert), flags);
  }
  if (flags.given.count("truncate") > 0) return NoUse("truncate", "a BERT that guesses masked tokens");
  WEFT_RETURN_IF_ERROR(CheckGuessesMasked(*bert));
  const absl::StatusOr<EncodedTexts> texts = EncodeTexts(*bert, flags.files);
  if (!texts.ok()) return UsageError(texts.status());
  const absl::StatusOr<ClassScore> score = EvaluateMaskedTokens(
      *bert, *texts, {.fraction = flags.masked, .seed = flags.seed, .batch = flags.batch, .threads = flags.threads});
  if (!score.ok()) return Failure(score.status());
  return ClassFigures(score, "masked_tokens", "masked token");
}

absl::StatusOr<Figures> MeasureVit(const EvaluateFlags& flags) {
  if (!flags.labels.empty() && flags.files.size() > 1) {
    return absl::InvalidArgumentError("--labels is for one file of pictures, but there are several");
  }
  const auto classifier = PictureClassifier::Open(flags.model, {.batch = flags.batch, .threads = flags.threads});
  if (!classifier.ok()) return UsageError(classifier.status());
  std::vector<Images> files;
  for (const std::string& path : flags.files) {
    absl::StatusOr<Images> images = ReadPicturesToEvaluate(**classifier, path, flags.labels);
    if (!images.ok()) return UsageError(images.status());
    files.push_back(*std::move(images));
  }
  return ClassFigures(EvaluatePictureClassifier(classifier->get(), files), "pictures", "picture");
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
  const absl::StatusOr<ParallelText> text = ReadParallelText(flags.translations, flags.references);
  if (!text.ok()) return UsageError(text.status());
  return BleuFigures(flags, text->source.lines, text->target.lines);
}

absl::StatusOr<Figures> MeasureTransformer(const EvaluateFlags& flags) {
  const absl::StatusOr<ParallelText> text = ReadParallelText(flags.source, flags.references);
  if (!text.ok()) return UsageError(text.status());
  const LineTranslatorOptions options = {
      .translate = {{.beam = flags.beam}}, .truncate = flags.truncate, .batch = flags.batch, .threads = flags.threads};
  const absl::StatusOr<std::unique_ptr<LineTranslator>> translator = LineTranslator::Open(flags.model, options);
  if (!translator.ok()) return UsageError(translator.status());
  std::vector<TokenIds> sources;
  for (size_t i = 0; i < text->source.lines.size(); ++i) {
    absl::StatusOr<TokenIds> ids = (*translator)->Encode(text->source.lines[i]);
    if (!ids.ok()) return Annotate(ids.status(), text->source.Location(i));
    sources.push_back(*std::move(ids));
  }
  const absl::StatusOr<std::vector<std::string>> lines = TranslateAll(translator->get(), sources);
  if (!lines.ok()) return Failure(lines.status());
  return BleuFigures(flags, *lines, text->target.lines);
}

// A kind of evaluation: the family of models, the flags that it uses, and the function that measures.
struct Subject {
  const ModelFamily* family;  // null: evaluates finished translations without a model
  const char* name;
  std::vector<std::string> flags;  // flags that it uses, in addition to --model, --json and --threads
  bool takes_files;                // true: arguments name its data; false: flags do
  absl::StatusOr<Figures> (*measure)(const EvaluateFlags& flags);
};

const Subject& SubjectOf(const ModelFamily* family) {
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
  return *absl::c_find_if(kSubjects, [&](const Subject& subject) { return subject.family == family; });
}

// Checks that the command line has all flags that the subject needs, and no others.
absl::Status CheckFlags(const EvaluateFlags& flags, const Subject& subject) {
  for (const auto& [flag, value] : flags.given) {
    if (flag == "model" || flag == "json" || flag == "threads" || absl::c_linear_search(subject.flags, flag)) continue;
    return NoUse(flag, subject.name);
  }
  for (const char* flag : {"source", "references"}) {
    if (!absl::c_linear_search(subject.flags, flag) || flags.given.count(flag) > 0) continue;
    return absl::InvalidArgumentError(absl::StrCat("--", flag, "=FILE is missing, to evaluate ", subject.name));
  }
  if (subject.takes_files != flags.files.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(subject.takes_files
                                        ? absl::StrCat("to evaluate ", subject.name, ", name a file of data")
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
    const absl::StatusOr<const ModelFamily*> found = FindFamily(flags.model);
    if (!found.ok()) return UsageError(found.status());
    family = *found;
  } else if (flags.translations.empty()) {
    return absl::InvalidArgumentError("--model=DIR is missing, or --translations=FILE and --references=FILE");
  }
  const Subject& subject = SubjectOf(family);
  WEFT_RETURN_IF_ERROR(CheckFlags(flags, subject));
  WEFT_ASSIGN_OR_RETURN(const Figures figures, subject.measure(flags));
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
  return {"weft evaluate", app, [flags] { return Evaluate(*flags); }};
}

}  // namespace weft
