#include "weft/models/translate.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "weft/apps/commands.h"
#include "weft/apps/flags.h"
#include "weft/apps/lines.h"
#include "weft/apps/open_model.h"
#include "weft/core/status.h"
#include "weft/text/text_stream.h"

namespace weft {
namespace {

struct TranslateFlags {
  std::string model;
  TranslateOptions options = {{.beam = 4}};
  bool scores = false, truncate = false;
  int64_t threads = 0, batch = 32;
  std::vector<std::string> files;
  GivenFlags given;
};

Hyperparameters Table(TranslateFlags* flags) {
  BeamSearchOptions& search = flags->options.search;
  return {
      {"model", "a run of weft train translate, or a folder of CTranslate2 with model.safetensors and vocabularies",
       &flags->model},
      {"beam", "translations that are followed at once; 1: greedy", &search.beam, {.low = 1, .high = 1024}},
      {"n-best", "translations to print for each line, at most beam", &search.n_best, {.low = 1, .high = 1024}},
      {"length-penalty", "the score is log-probability / length^this", &search.length_penalty, {.low = 0, .high = 10}},
      {"max-length",
       "the most tokens of a translation; 0: 50 more than its source has",
       &flags->options.max_length,
       {.low = 0}},
      {"scores", "add a tab and the log-probability to each translation", &flags->scores},
      {"truncate", "cut lines that are longer than the model's context, which are errors else", &flags->truncate},
      {"batch", "the most lines that are translated at once", &flags->batch, {.low = 1, .high = 4096}},
      {"threads", "threads to compute with; 0: one a core", &flags->threads, {.low = 0, .high = 1024}},
  };
}

class LineTranslator {
 public:
  static absl::StatusOr<std::unique_ptr<LineTranslator>> Create(const TranslateFlags& flags) {
    WEFT_ASSIGN_OR_RETURN(OpenedTransformer opened, OpenTransformer(flags.model));
    if (flags.options.max_length > opened.model.config.context) {
      return absl::InvalidArgumentError(absl::StrCat("--max-length: ", flags.options.max_length,
                                                     " is more than the model's context ",
                                                     opened.model.config.context));
    }
    auto translator = std::unique_ptr<LineTranslator>(new LineTranslator(flags, std::move(opened)));
    WEFT_ASSIGN_OR_RETURN(translator->translator_,
                          Translator::Create(translator->opened_.model.config, &translator->parameters_,
                                             {.batch = flags.batch, .threads = static_cast<int>(flags.threads)}));
    WEFT_RETURN_IF_ERROR(translator->parameters_.Set(flags.model, translator->opened_.model.weights.tensors()));
    return translator;
  }

  // Prints the translations of the lines before the first that can't be used, and then returns what is wrong with that.
  absl::Status Lines(absl::Span<const Line> lines) {
    std::vector<std::vector<int32_t>> sources;
    std::vector<bool> empty;
    absl::Status wrong;
    for (const Line& line : lines) {
      absl::StatusOr<std::vector<int32_t>> ids = Encode(line.text);
      wrong = Annotate(ids.status(), line.place);
      if (!wrong.ok()) break;
      empty.push_back(ids->empty());
      if (!ids->empty()) sources.push_back(*std::move(ids));
    }
    const auto translations = translator_->Translate(sources, flags_.options);
    WEFT_RETURN_IF_ERROR(Failure(translations.status()));
    size_t next = 0;
    for (const bool nothing : empty) {
      WEFT_RETURN_IF_ERROR(Failure(Print(nothing ? std::vector<Hypothesis>{{}} : (*translations)[next++])));
    }
    return wrong;
  }

 private:
  LineTranslator(const TranslateFlags& flags, OpenedTransformer opened) : flags_(flags), opened_(std::move(opened)) {
    flags_.options.search.begin = opened_.begin;
    flags_.options.search.end = opened_.end;
  }

  // None for a line without tokens.
  absl::StatusOr<std::vector<int32_t>> Encode(absl::string_view line) const {
    WEFT_ASSIGN_OR_RETURN(std::vector<int32_t> ids, opened_.source->Encode(line));
    if (ids.empty()) return ids;
    const size_t around = opened_.sources_end ? 1 : 0, context = static_cast<size_t>(opened_.model.config.context);
    if (ids.size() + around > context) {
      if (!flags_.truncate) {
        return absl::InvalidArgumentError(absl::StrCat("it has ", ids.size() + around,
                                                       " tokens, but the model's context is ", context,
                                                       "; --truncate cuts such lines"));
      }
      ids.resize(context - around);
    }
    if (opened_.sources_end) ids.push_back(opened_.end);
    return ids;
  }

  // As many lines as were asked for; those that there are no translations for are empty.
  absl::Status Print(const std::vector<Hypothesis>& translations) const {
    for (size_t n = 0; n < static_cast<size_t>(flags_.options.search.n_best); ++n) {
      std::string text;
      if (n < translations.size()) {
        TextStream stream(*opened_.target, {});
        for (int32_t token : translations[n].tokens) {
          if (token >= opened_.target->vocabulary_size()) continue;  // a row of padding
          WEFT_ASSIGN_OR_RETURN(const std::string more, stream.Add(token));
          text += more;
        }
        text += stream.Finish();
      }
      text = absl::StrReplaceAll(text, {{"\n", " "}, {"\r", " "}, {"\t", " "}});
      constexpr double kNever = -std::numeric_limits<double>::infinity();
      if (flags_.scores) {
        absl::StrAppendFormat(&text, "\t%.6f", n < translations.size() ? translations[n].log_probability : kNever);
      }
      std::printf("%s\n", text.c_str());
    }
    return absl::OkStatus();
  }

  TranslateFlags flags_;
  const OpenedTransformer opened_;
  Parameters parameters_{{.draw = false}};
  std::unique_ptr<Translator> translator_;
};

absl::Status Translate(TranslateFlags flags) {
  WEFT_RETURN_IF_ERROR(SetFromFlags(flags.given, Table(&flags)));
  if (flags.model.empty()) return absl::InvalidArgumentError("--model=DIR is missing");
  BeamSearchOptions& search = flags.options.search;
  if (flags.given.count("beam") == 0) search.beam = std::max(search.beam, search.n_best);
  if (search.n_best > search.beam) {
    return absl::InvalidArgumentError(
        absl::StrCat("--n-best: ", search.n_best, " is more than the ", search.beam, " of --beam"));
  }
  const absl::StatusOr<std::unique_ptr<LineTranslator>> translator = LineTranslator::Create(flags);
  if (!translator.ok()) return UsageError(translator.status());
  // More lines than a batch, so that those of like lengths can be put together.
  constexpr size_t kBatches = 8;
  return ForEachBatch(flags.files, kBatches * static_cast<size_t>(flags.batch),
                      [&](absl::Span<const Line> lines) { return (*translator)->Lines(lines); });
}

}  // namespace

Command TranslateCommand(CLI::App* weft) {
  auto flags = std::make_shared<TranslateFlags>();
  CLI::App* app = weft->add_subcommand(
      "translate",
      "Prints a translation of each line of text, or its n best, a line each, in the order of the lines. "
      "An empty line gives an empty line.");
  AddFlags(app, Table(flags.get()), &flags->given);
  AddFiles(app, &flags->files);
  return {"weft translate", app, [flags] { return Translate(*flags); }};
}

}  // namespace weft
