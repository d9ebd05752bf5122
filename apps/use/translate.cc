// `weft translate` translates lines of text.
#include <cstdio>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "weft/apps/commands.h"
#include "weft/apps/flags.h"
#include "weft/apps/streams.h"
#include "weft/apps/use/generator_rows.h"
#include "weft/base/status.h"
#include "weft/inference/generate/line_translator.h"
#include "weft/text/data/lines.h"

namespace weft {
namespace {

struct TranslateFlags : ModelFlags {
  TranslationOptions translation;
  bool scores = false;
};

Hyperparameters Table(TranslateFlags* flags) {
  Hyperparameters table = {
      ModelRow("a run of weft train translate, a folder of weft quantize, a Transformer of CTranslate2, or an "
               "encoder-decoder of Hugging Face",
               &flags->model),
  };
  Append(TranslationRows(&flags->translation), &table);
  table.push_back(
      {"scores", "add a tab and the log-probability to each translation", &flags->scores, {.group = "Output"}});
  return table;
}

// Prints the best `n_best` translations of a line, one a line. If there are fewer, prints empty translations in their
// place, with --scores of log-probability -inf.
absl::Status Print(const TranslateFlags& flags, const LineTranslator& translator,
                   const std::vector<Hypothesis>& translations) {
  for (size_t n = 0; n < static_cast<size_t>(flags.translation.options.search.n_best); ++n) {
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
  WEFT_ASSIGN_OR_RETURN(const auto translator, OpenTranslator(flags.model, flags.given, &flags.translation));
  const auto encode = [&](absl::string_view line) { return translator->Encode(line); };
  const auto print = [&](const TextLines&, absl::Span<const TokenIds> sources) -> absl::Status {
    WEFT_ASSIGN_OR_RETURN(const auto translations, translator->Translate(sources));
    for (const std::vector<Hypothesis>& each : translations) WEFT_RETURN_IF_ERROR(Print(flags, *translator, each));
    return absl::OkStatus();
  };
  return AnswerLines(flags.files, kBatchesAtOnce * static_cast<size_t>(flags.translation.options.runtime.batch), encode,
                     print);
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
