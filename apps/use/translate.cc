// `weft translate` translates lines of text.
#include <algorithm>
#include <cstdio>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "weft/apps/commands.h"
#include "weft/apps/flags.h"
#include "weft/apps/streams.h"
#include "weft/apps/use/generator_rows.h"
#include "weft/base/status.h"
#include "weft/formats/generation.h"
#include "weft/inference/generate/line_translator.h"
#include "weft/text/data/lines.h"

namespace weft {
namespace {

struct TranslateFlags : ModelFlags {
  LineTranslatorOptions options = {.search = {.beam = 4}};
  std::optional<std::vector<std::string>> end_tokens;
  std::optional<bool> special_tokens;
  bool scores = false;
};

Hyperparameters Table(TranslateFlags* flags) {
  BeamSearchOptions& search = flags->options.search;
  return {
      ModelRow("a run of weft train translate, a folder of weft quantize, a Transformer of CTranslate2, or an "
               "encoder-decoder of Hugging Face",
               &flags->model),
      {"beam",
       "number of hypotheses of beam search; 1: greedy",
       &search.beam,
       {.low = 1, .high = 1024, .group = "Search"}},
      {"n-best",
       "number of translations to print for each line, at most --beam",
       &search.n_best,
       {.low = 1, .high = 1024, .group = "Output"}},
      {"length-penalty",
       "exponent p: hypotheses rank by log-probability / length^p",
       &search.length_penalty,
       {.low = 0, .high = 10, .group = "Search"}},
      {"max-length",
       "maximum number of tokens of a translation; 0: 50 more than its source has",
       &search.max_length,
       {.low = 0, .group = "Search"}},
      {"shortlist",
       "a lexicon of weft lexicon or Marian: a line's translations consist of likely translations of its tokens only, "
       "which is faster",
       &flags->options.shortlist,
       {.group = "Search", .type = "FILE"}},
      {"shortlist-translations",
       "number of translations to take from the lexicon for each token of a line",
       &flags->options.shortlist_translations,
       {.low = 1, .high = 1e6, .needs = "shortlist", .group = "Search"}},
      EndTokensRow(&flags->end_tokens, "Search"),
      {"scores", "add a tab and the log-probability to each translation", &flags->scores, {.group = "Output"}},
      TruncateRow(&flags->options.truncate),
      SpecialTokensRow(&flags->special_tokens, "Data"),
      BatchRow("maximum number of lines translated at once; it changes no translation", &flags->options.runtime.batch),
      WeightsRow(&flags->options.runtime.weights),
      ThreadsRow(&flags->options.runtime.threads),
  };
}

// Prints the best `n_best` translations of a line, one a line. If there are fewer, prints empty translations in their
// place, with --scores of log-probability -inf.
absl::Status Print(const TranslateFlags& flags, const LineTranslator& translator,
                   const std::vector<Hypothesis>& translations) {
  for (size_t n = 0; n < static_cast<size_t>(flags.options.search.n_best); ++n) {
    std::string text;
    if (n < translations.size()) {
      WEFT_ASSIGN_OR_RETURN(text, translator.Text(translations[n]));
    }
    constexpr double kImpossible = -std::numeric_limits<double>::infinity();
    if (flags.scores) {
      absl::StrAppendFormat(&text, "\t%.6f", n < translations.size() ? translations[n].log_probability : kImpossible);
    }
    text += '\n';
    std::fwrite(text.data(), 1, text.size(), stdout);  // it may have a NUL
  }
  return absl::OkStatus();
}

absl::Status Translate(TranslateFlags flags) {
  PrintMemoryNote(flags.model);
  WEFT_ASSIGN_OR_RETURN(OpenedTransformer opened, UsageError(OpenTransformer(flags.model)));
  PrintNotes(opened.notes);
  opened.source->ReadSpecial(flags.special_tokens);
  flags.options.search = opened.search;  // the defaults; the given flags are set once more
  BeamSearchOptions& search = flags.options.search;
  WEFT_RETURN_IF_ERROR(SetFromFlags(flags.given, Table(&flags)));
  if (flags.given.count("beam") == 0) search.beam = std::max(search.beam, search.n_best);
  if (flags.end_tokens) {
    WEFT_ASSIGN_OR_RETURN(search.end, EndTokens(*opened.target, *flags.end_tokens));
  }
  if (search.n_best > search.beam) {
    return InvalidArgument("--n-best: ", search.n_best, " is more than the ", search.beam, " of --beam");
  }
  WEFT_ASSIGN_OR_RETURN(const auto translator, UsageError(LineTranslator::Create(std::move(opened), flags.options)));
  const auto encode = [&](absl::string_view line) { return translator->Encode(line); };
  const auto print = [&](const TextLines&, absl::Span<const TokenIds> sources) -> absl::Status {
    WEFT_ASSIGN_OR_RETURN(const auto translations, translator->Translate(sources));
    for (const std::vector<Hypothesis>& each : translations) WEFT_RETURN_IF_ERROR(Print(flags, *translator, each));
    return absl::OkStatus();
  };
  return AnswerLines(flags.files, kBatchesAtOnce * static_cast<size_t>(flags.options.runtime.batch), encode, print);
}

}  // namespace

Command TranslateCommand(CLI::App* weft, const std::string& name) {
  return MakeCommand(weft, name,
                     {"Prints the best translation of each line of text, or the best --n-best translations, one "
                      "a line. An empty line gives empty translations. The model's generation_config.json gives "
                      "the defaults of --beam, --length-penalty and --max-length.",
                      "translates each line of text",
                      {{"Translates the lines of a file.", "weft translate --model=runs/translate-1 en.txt"},
                       {"Translates one line and prints its 3 best translations.",
                        "echo 'A dog runs.' | weft translate --model=runs/translate-1 --n-best=3 --scores"}}},
                     std::make_shared<TranslateFlags>(), Table, Translate, &TranslateFlags::files);
}

}  // namespace weft
