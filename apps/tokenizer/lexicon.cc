// `weft lexicon` learns a lexicon, from which `weft translate --shortlist` takes the words of a translation.
#include <cstdio>
#include <memory>
#include <string>

#include "weft/apps/commands.h"
#include "weft/apps/flags.h"
#include "weft/core/file.h"
#include "weft/core/status.h"
#include "weft/inference/open_model.h"
#include "weft/inference/translation_lexicon.h"

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
      {"model",
       "the model whose tokenizers split the texts, as for weft translate",
       &flags->model,
       {.type = "MODEL", .required = true}},
      {"source", "a file of sentences, one a line", &flags->texts.source, {.type = "FILE", .required = true}},
      {"target", "the file of their translations", &flags->texts.target, {.type = "FILE", .required = true}},
      {"out", "the file to write", &flags->out, {.type = "FILE", .required = true}},
      {"best", "maximum number of translations of a token to keep", &flags->texts.best, {.low = 1, .high = 1e6}},
      {"overwrite", "replace the file if it is there", &flags->overwrite},
  };
}

absl::Status LearnLexicon(LexiconFlags flags) {
  WEFT_RETURN_IF_ERROR(SetFromFlags(flags.given, Table(&flags)));
  for (const char* flag : {"model", "source", "target", "out"}) {
    if (flags.given.count(flag) == 0) return InvalidArgument("--", flag, " is missing");
  }
  WEFT_ASSIGN_OR_RETURN(const OpenedTransformer model, UsageError(OpenTransformer(flags.model)));
  const IfThere if_there = flags.overwrite ? IfThere::kReplace : IfThere::kFail;
  WEFT_ASSIGN_OR_RETURN(const LearntLexicon learnt,
                        UsageError(LearnModelLexicon(model, flags.texts, flags.out, if_there)));
  std::printf("%s: %lld translations, learnt from %lld pairs of sentences\n", flags.out.c_str(),
              static_cast<long long>(learnt.translations), static_cast<long long>(learnt.pairs));
  return absl::OkStatus();
}

}  // namespace

Command LexiconCommand(CLI::App* weft) {
  auto flags = std::make_shared<LexiconFlags>();
  CLI::App* app = AddCommand(weft, "lexicon",
                             "Learns from sentences and their translations which tokens translate which (IBM Model 1). "
                             "weft translate --shortlist reads the file, and so does Marian.");
  AddFlags(app, Table(flags.get()), &flags->given);
  return {"weft lexicon",
          app,
          [flags] { return LearnLexicon(*flags); },
          "learns which words translate which",
          {{"Learns from the text that trained the model.",
            "weft lexicon --model=runs/translate-1 --source=en.txt --target=de.txt --out=lexicon.txt"},
           {"Translates with it.", "weft translate --model=runs/translate-1 --shortlist=lexicon.txt en.txt"}}};
}

}  // namespace weft
