// `weft lexicon` learns a lexicon, from which `weft translate --shortlist` takes the words of a translation.
#include <cstdio>
#include <memory>
#include <string>

#include "absl/strings/str_format.h"
#include "weft/apps/commands.h"
#include "weft/apps/flags.h"
#include "weft/apps/streams.h"
#include "weft/base/file.h"
#include "weft/base/status.h"
#include "weft/inference/generate/line_translator.h"
#include "weft/inference/runtime/open_model.h"

namespace weft {
namespace {

struct LexiconFlags {
  std::string model, out;
  LexiconTexts texts;
  bool overwrite = false;
  GivenFlags given;
};

Hyperparameters Table(LexiconFlags* flags) {
  return {
      ModelRow("the model whose tokenizers split the texts, as for weft translate", &flags->model, ""),
      {"source", "a file of sentences, one a line", &flags->texts.source, {.type = "FILE", .required = true}},
      {"target", "the file of their translations", &flags->texts.target, {.type = "FILE", .required = true}},
      {"out", "the file to write", &flags->out, {.type = "FILE", .required = true}},
      {"max-translations",
       "maximum number of translations of a token to keep",
       &flags->texts.max_translations,
       {.low = 1, .high = 1e6}},
      {"overwrite", "replace the file if it is there", &flags->overwrite},
  };
}

absl::Status LearnFromTexts(LexiconFlags flags) {
  if (flags.out == kStandardOutput) return InvalidArgument("--out: '-' is standard output, wanted a file");
  for (std::string* const path : {&flags.texts.source, &flags.texts.target}) *path = InputPath(*path);
  WEFT_ASSIGN_OR_RETURN(const OpenedTransformer model, UsageError(OpenTransformer(flags.model)));
  const IfThere if_there = flags.overwrite ? IfThere::kReplace : IfThere::kFail;
  WEFT_ASSIGN_OR_RETURN(const LearntLexicon learnt,
                        UsageError(LearnModelLexicon(model, flags.texts, flags.out, if_there)));
  absl::PrintF("%s: %d translations, learnt from %d pairs of sentences", flags.out, learnt.translations, learnt.pairs);
  if (learnt.left_out > 0) {
    absl::PrintF("; %d pairs without tokens, or with more than %d, on a side were left out", learnt.left_out,
                 kMaxLexiconTokens);
  }
  std::printf("\n");
  return absl::OkStatus();
}

}  // namespace

Command LexiconCommand(CLI::App* weft, const std::string& name) {
  return MakeCommand(
      weft, name,
      {"Learns from sentences and their translations which tokens translate which (IBM Model 1). "
       "weft translate --shortlist reads the file, and so does Marian.",
       "learns which tokens translate which",
       {{"Learns from the text that trained the model.",
         "weft lexicon --model=runs/translate-1 --source=en.txt --target=de.txt --out=lexicon.txt"},
        {"Translates with it.", "weft translate --model=runs/translate-1 --shortlist=lexicon.txt en.txt"}}},
      std::make_shared<LexiconFlags>(), Table, LearnFromTexts);
}

}  // namespace weft
