// `weft evaluate` measures a model on data and prints figures, such as loss, that depend on the model's family. The
// figures of translations are in translations.cc.
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "weft/apps/commands.h"
#include "weft/apps/evaluate/figures.h"
#include "weft/apps/flags.h"
#include "weft/apps/streams.h"
#include "weft/apps/use/generator_rows.h"
#include "weft/base/status.h"
#include "weft/formats/model_formats.h"
#include "weft/inference/encode/classifier.h"
#include "weft/inference/measure/evaluation.h"
#include "weft/inference/measure/metrics.h"
#include "weft/inference/runtime/open_model.h"
#include "weft/text/data/labelled_examples.h"

namespace weft {
namespace {

// Returns `rows`, whose help then begins with the models that they are for.
Hyperparameters For(const char* models, Hyperparameters rows) {
  for (Hyperparameter& row : rows) row.help = absl::StrCat("for ", models, ": ", row.help);
  return rows;
}

// Returns the rows of `weft translate` that choose translations, such as --beam.
Hyperparameters SearchRows(TranslationOptions* translation) {
  Hyperparameters rows = TranslationRows(translation);
  std::erase_if(rows, [](const Hyperparameter& row) { return row.rules.group != "Search"; });
  for (Hyperparameter& row : rows) row.rules.group = "";
  return rows;
}

Hyperparameters Table(EvaluateFlags* flags) {
  Hyperparameters table = {
      {"model",
       "a run of weft train, a folder of weft quantize, or a published model",
       &flags->model,
       {.type = "MODEL"}},
      {"tokenizer",
       "for a GPT: tokenizer to use instead of the model's",
       &flags->tokenizer,
       {.type = "FILE_OR_FOLDER"}},
      {"masked", "for a BERT: fraction of the tokens that are masked", &flags->masked, {.low = 0.001, .high = 1}},
      {"stride",
       "for a GPT: number of tokens from one window to the next; windows overlap if it is less than the context, which "
       "usually lowers the loss and takes longer; 0: the context",
       &flags->stride,
       {.low = 0}},
      {"seed", "for a BERT: seed for choosing the masked tokens; with --baseline: for drawing lines", &flags->seed},
      {"labels", "for a ViT: the file of labels that IDX needs", &flags->labels, {.type = "FILE"}},
      {"source", "for a Transformer: the file to translate, a sentence a line", &flags->source, {.type = "FILE"}},
      {"references",
       "for a Transformer: the file of reference translations of the source's lines, or several files, separated by "
       "commas",
       &flags->references,
       {.type = "FILES"}},
      {"translations",
       "finished translations, to compare with --references without a model",
       &flags->translations,
       {.type = "FILE"}},
      {"baseline",
       "another system's finished translations, or its model: tells whether the difference is significant, by paired "
       "bootstrap",
       &flags->baseline,
       {.type = "FILE_OR_MODEL"}},
      {"resamples",
       "with --baseline: number of resamples",
       &flags->resamples,
       {.low = 1, .high = 1e6, .needs = "baseline"}},
      {"lowercase", "ignore case when translations are compared", &flags->lowercase},
      {"truncate", "cut lines that are longer than the model's context, instead of failing", &flags->truncate},
      BatchRow("maximum number of examples computed at once; the figures do not depend on it", &flags->runtime.batch,
               ""),
      {"json", "print one JSON object", &flags->json},
      SpecialTokensRow(&flags->special_tokens),
      WeightsRow(&flags->runtime.weights),
      {"threads", "number of threads; 0: one for each core", &flags->runtime.threads, {.low = 0, .high = 1024}},
      {"pairs", "for a BERT with a classifier: texts are pairs, also if the model is no run of Weft", &flags->pairs},
  };
  Append(For("a Transformer", SearchRows(&flags->translation)), &table);
  Append(For("a BERT with a classifier", LabelledDataTable(&flags->data)), &table);
  return table;
}

std::string NoUse(const std::string& subject) { return absl::StrCat(" has no use in evaluating ", subject); }

Figures ScoreFigures(const ClassScore& score, const std::string& count, const std::string& unit) {
  return {Count(count, score.count),
          {"loss", score.loss, absl::StrFormat("%.6f nats a %s", score.loss, unit)},
          {"accuracy", score.accuracy, absl::StrFormat("%.2f %%", 100 * score.accuracy)}};
}

nlohmann::ordered_json Json(const Quality& quality) {
  return {
      {"precision", quality.precision}, {"recall", quality.recall}, {"f1", quality.f1}, {"support", quality.support}};
}

Figures ClassFigures(const ConfusionMatrix& confusion, const std::vector<std::string>& labels) {
  const ClassReport report = ReportClasses(confusion);
  auto classes = nlohmann::ordered_json::array();
  for (size_t i = 0; i < labels.size(); ++i) {
    classes.push_back({{"label", labels[i]}});
    classes.back().update(Json(report.classes[i]));
  }
  return {{"classes", std::move(classes), ""},
          {"macro_average", Json(report.macro), ""},
          {"weighted_average", Json(report.weighted), ""},
          {"confusion_matrix", confusion, ""},
          {"", nullptr, absl::StrCat("\n", ToText(confusion, labels))}};
}

absl::StatusOr<Figures> MeasureGpt(const EvaluateFlags& flags) {
  WEFT_ASSIGN_OR_RETURN(const OpenedGpt gpt, UsageError(OpenGpt(flags.model, flags.tokenizer)));
  gpt.tokenizer->ReadSpecial(flags.special_tokens);
  WEFT_ASSIGN_OR_RETURN(const LanguageModelScore score,
                        UsageError(EvaluateGpt(gpt, flags.files, flags.stride, flags.runtime)));
  const std::string perplexity = absl::StrFormat("%.4f by token, %.4f by word, %.4f by byte", score.perplexity,
                                                 score.word_perplexity, score.byte_perplexity);
  return Figures{Count("tokens", score.tokens),
                 {"loss", score.loss, absl::StrFormat("%.6f nats a token", score.loss)},
                 {"perplexity", score.perplexity, perplexity},
                 {"word_perplexity", score.word_perplexity, ""},
                 {"byte_perplexity", score.byte_perplexity, ""},
                 {"bits_per_byte", score.bits_per_byte, absl::StrFormat("%.6f", score.bits_per_byte)},
                 Count("bytes", score.bytes),
                 Count("words", score.words)};
}

Figures TagFigures(const ClassScore& score) {
  const TaggingScore& tags = score.tags;
  const TagReport report = tags.Report();
  const Quality& all = report.all;
  auto types = nlohmann::ordered_json::object();
  for (const auto& [type, figures] : report.types) types[type] = Json(figures);
  return {Count("words", tags.words()),
          {"loss", score.loss, absl::StrFormat("%.6f nats a word", score.loss)},
          {"accuracy", tags.accuracy(), absl::StrFormat("%.2f %%", 100 * tags.accuracy())},
          {"precision", all.precision, absl::StrFormat("%.6f", all.precision)},
          {"recall", all.recall, absl::StrFormat("%.6f", all.recall)},
          {"f1", all.f1, absl::StrFormat("%.6f", all.f1)},
          {"entities", std::move(types), absl::StrCat("\n", ToText(report))},
          {"macro_average", Json(report.macro), ""},
          {"weighted_average", Json(report.weighted), ""}};
}

Figures ClassifierFigures(const Classifier& classifier, const ClassScore& score) {
  if (classifier.task() == TextTask::kTokens) return TagFigures(score);
  const std::string example(classifier.example());
  if (classifier.task() == TextTask::kRegression) {
    return {Count(example + "s", score.count),
            {"loss", score.loss, absl::StrFormat("%.6f, the mean squared error", score.loss)},
            {"pearson", score.pearson, absl::StrFormat("%.6f", score.pearson)},
            {"spearman", score.spearman, absl::StrFormat("%.6f", score.spearman)}};
  }
  Figures figures = ScoreFigures(score, example + "s", example);
  if (score.count == 0) return figures;
  for (Figure& figure : ClassFigures(score.confusion, classifier.labels())) figures.push_back(std::move(figure));
  return figures;
}

absl::StatusOr<Figures> MeasureVit(const EvaluateFlags& flags) {
  WEFT_ASSIGN_OR_RETURN(const auto classifier, UsageError(PictureClassifier::Open(flags.model, flags.runtime)));
  WEFT_ASSIGN_OR_RETURN(const ClassScore score,
                        UsageError(EvaluatePictures(classifier.get(), flags.files, flags.labels)));
  return ClassifierFigures(*classifier, score);
}

absl::StatusOr<Figures> MeasureBert(const EvaluateFlags& flags) {
  WEFT_ASSIGN_OR_RETURN(OpenedBert bert, UsageError(OpenBert(flags.model)));
  bert.tokenizer->ReadSpecial(flags.special_tokens);
  if (!bert.model.labels.empty()) {
    WEFT_RETURN_IF_ERROR(CheckNotGiven(flags.given, {"masked", "seed"}, NoUse("a BERT with a classifier")));
    const BertEncoderOptions options = {.runtime = flags.runtime, .truncate = flags.truncate, .pairs = flags.pairs};
    WEFT_ASSIGN_OR_RETURN(const auto head, UsageError(TextHead::Create(std::move(bert), options)));
    WEFT_ASSIGN_OR_RETURN(const ClassScore score, UsageError(EvaluateTexts(head.get(), flags.files, flags.data)));
    return ClassifierFigures(*head, score);
  }
  WEFT_RETURN_IF_ERROR(CheckNotGiven(
      flags.given, {"truncate", "pairs", "format", "header", "text-column", "text-pair-column", "label-column"},
      NoUse("a BERT that guesses masked tokens")));
  WEFT_ASSIGN_OR_RETURN(const ClassScore score,
                        UsageError(EvaluateMaskedTokens(bert, flags.files, flags.masked, flags.seed, flags.runtime)));
  return ScoreFigures(score, "masked_tokens", "masked token");
}

// One kind of evaluation: the family of models, the flags that it uses, and the function that computes its figures.
struct Subject {
  const ModelFamily* family;  // null: evaluates finished translations without a model
  const char* name;
  std::vector<std::string> flags;  // those that it uses, besides --model, --json, --threads and --weights
  bool takes_files;                // true: arguments name its data; false: flags do
  absl::StatusOr<Figures> (*measure)(const EvaluateFlags& flags);
};

std::vector<std::string> TransformerFlags() {
  std::vector<std::string> flags = {"source",   "references", "lowercase", "truncate",      "batch",
                                    "baseline", "resamples",  "seed",      "special-tokens"};
  TranslationOptions translation;
  for (const Hyperparameter& row : SearchRows(&translation)) flags.push_back(row.flag);
  return flags;
}

// Returns the subject for models of `family`, or for translations if it is null. Returns null if `weft evaluate` has no
// measure for the family.
const Subject* FindSubject(const ModelFamily* family) {
  static const Subject kSubjects[] = {
      {&PublishedGpt::kFamily, "a GPT", {"tokenizer", "stride", "special-tokens"}, true, MeasureGpt},
      {&PublishedBert::kFamily,
       "a BERT",
       {"masked", "seed", "truncate", "batch", "pairs", "format", "header", "text-column", "text-pair-column",
        "label-column", "special-tokens"},
       true,
       MeasureBert},
      {&PublishedVit::kFamily, "a ViT", {"labels", "batch"}, true, MeasureVit},
      {&PublishedTransformer::kFamily, "a Transformer", TransformerFlags(), false, MeasureTransformer},
      {nullptr,
       "translations",
       {"translations", "references", "lowercase", "baseline", "resamples", "seed"},
       false,
       MeasureTranslations},
  };
  const auto found = absl::c_find_if(kSubjects, [&](const Subject& subject) { return subject.family == family; });
  return found != std::end(kSubjects) ? found : nullptr;
}

// Checks that the command line has the flags and files that `subject` needs, and none that `subject` does not use.
absl::Status CheckFlags(const EvaluateFlags& flags, const Subject& subject) {
  for (const auto& [flag, value] : flags.given) {
    if (flag == "model" || flag == "json" || ((flag == "threads" || flag == "weights") && subject.family != nullptr) ||
        absl::c_linear_search(subject.flags, flag)) {
      continue;
    }
    return InvalidArgument("--", flag, NoUse(subject.name));
  }
  for (const char* flag : {"source", "references"}) {
    if (!absl::c_linear_search(subject.flags, flag) || flags.given.count(flag) > 0) continue;
    return InvalidArgument("--", flag, "=FILE is missing, to evaluate ", subject.name);
  }
  if (absl::c_linear_search(subject.flags, "baseline") && flags.baseline.empty() && flags.given.count("seed") > 0) {
    return InvalidArgument("--seed has no use without --baseline");  // with a BERT, it has one
  }
  if (subject.takes_files != flags.files.empty()) return absl::OkStatus();
  return InvalidArgument(subject.takes_files ? absl::StrCat("to evaluate ", subject.name, ", name a file of data")
                                             : absl::StrCat("the file ", flags.files[0], " has no use in evaluating ",
                                                            subject.name, ", whose data are flags"));
}

void Print(const Figures& figures, bool as_json) {
  if (as_json) {
    nlohmann::ordered_json json;
    for (const Figure& figure : figures) {
      if (!figure.name.empty()) json[figure.name] = figure.value;
    }
    std::printf("%s\n", json.dump().c_str());
    return;
  }
  for (const Figure& figure : figures) {
    if (figure.name.empty()) {
      std::printf("%s", Printable(figure.text, "\n").c_str());
    } else if (!figure.text.empty()) {
      std::printf("%-14s %s\n", figure.title.c_str(), Printable(figure.text, "\n").c_str());
    }
  }
}

// Replaces "-" by the path of standard input, which can be read once.
absl::Status NameStandardInput(EvaluateFlags* flags) {
  std::vector<std::string> references = absl::StrSplit(flags->references, ',');
  std::vector<std::string*> paths = {&flags->source, &flags->translations, &flags->baseline, &flags->labels};
  for (std::vector<std::string>* files : {&references, &flags->files}) {
    for (std::string& file : *files) paths.push_back(&file);
  }
  int count = 0;
  for (std::string* path : paths) {
    if (*path != "-") continue;
    *path = "/dev/stdin";
    if (++count > 1) return InvalidArgument("'-' is standard input, which can be read once only");
  }
  flags->references = absl::StrJoin(references, ",");
  return absl::OkStatus();
}

absl::Status Evaluate(EvaluateFlags flags) {
  PrintMemoryNote(flags.model);
  WEFT_RETURN_IF_ERROR(NameStandardInput(&flags));
  const ModelFamily* family = nullptr;
  if (!flags.model.empty()) {
    WEFT_ASSIGN_OR_RETURN(family, UsageError(FindFamily(flags.model)));
  } else if (flags.translations.empty()) {
    return InvalidArgument("--model=DIR is missing, or --translations=FILE and --references=FILE");
  }
  const Subject* const subject = FindSubject(family);
  if (subject == nullptr) {
    return InvalidArgument("--model: ", flags.model, " is ", family->name, ", which evaluate can't measure");
  }
  WEFT_RETURN_IF_ERROR(CheckFlags(flags, *subject));
  WEFT_ASSIGN_OR_RETURN(const Figures figures, subject->measure(flags));
  Print(figures, flags.json);
  return absl::OkStatus();
}

}  // namespace

Command EvaluateCommand(CLI::App* weft, const std::string& name) {
  return MakeCommand(
      weft, name,
      {"Measures a model on data. A GPT gets texts, and the figures are loss, perplexity by token, word and byte, and "
       "bits per byte. Texts are cut into windows of the context's length, and each token is predicted once, from the "
       "tokens before it in its window; with --stride, windows overlap. A BERT gets texts, cut into such windows, and "
       "the figures are loss and accuracy of masked tokens. A BERT with a classifier gets labelled texts in the "
       "formats of weft train classify, and a ViT gets pictures with labels; the figures are loss, accuracy, "
       "precision, recall and F1 of each class, their averages, and the confusion matrix; of labelled words those of "
       "entities, and of a regression correlations. A Transformer translates --source as weft translate does, and the "
       "figures compare its translations with --references: BLEU, chrF and chrF++; with --baseline also their "
       "differences from another system. A model that --baseline names translates with the same flags. "
       "generation_config.json gives the defaults of --beam, --length-penalty and --max-length. Finished translations "
       "need no model. The file '-' is standard input.",
       "measures loss, perplexity, accuracy, F1 or BLEU on data",
       {{"Measures a GPT on a text.", "weft evaluate --model=runs/gpt-1 book.txt"},
        {"Computes BLEU, chrF and chrF++ of finished translations.",
         "weft evaluate --translations=output.txt --references=de.txt"}}},
      std::make_shared<EvaluateFlags>(), Table, Evaluate, &EvaluateFlags::files);
}

}  // namespace weft
