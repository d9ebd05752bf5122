// The flags of commands that generate and translate text, and the models that they open.
//
//   Hyperparameters table = GeneratorRows(&options);   // --length, --temperature, --top-k, ..., --weights, --threads
//   WEFT_ASSIGN_OR_RETURN(OpenedGpt gpt, OpenForCommand(model, given, /*beams=*/true, &options));
#ifndef WEFT_APPS_USE_GENERATOR_ROWS_H_
#define WEFT_APPS_USE_GENERATOR_ROWS_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "weft/apps/flags.h"
#include "weft/inference/generate/line_translator.h"
#include "weft/inference/generate/text_generation.h"
#include "weft/inference/runtime/open_model.h"
#include "weft/options/hyperparameters.h"

namespace weft {

// Returns rows for all sampling options except the seed. A server reads them from requests by Hyperparameter::key.
Hyperparameters SamplingRows(SamplingOptions* sampling);
// Returns rows for the options of a TextGenerator that these commands share.
Hyperparameters GeneratorRows(TextGeneratorOptions* generator);
// The options of `weft generate` before flags change them, and its rows, which include GeneratorRows.
inline const TextGeneratorOptions kUsualGeneration = {
    .generate = {.sampling = {.temperature = 0.8, .seed = 1}, .length = 500},
};
Hyperparameters GenerateRows(TextGeneratorOptions* generator);

// Opens the model. Sets the options without a flag in `given` to the defaults in the model's files, if there are any.
// Prints a note on stderr for each setting in these files that the command does not use. `beams`: whether the command
// has the flag --beam. Returns InvalidArgument, as UsageError does, if the model can't be opened, a default is invalid,
// or a flag in `given` has no use with --beam or without it.
absl::StatusOr<OpenedGpt> OpenForCommand(const std::string& model, const GivenFlags& given, bool beams,
                                         TextGeneratorOptions* options);
// Prints a note on stderr if texts ended because they filled the context.
void PrintFullNote(const TextGenerator& generator);

// The options of `weft translate`, of `weft evaluate` for a Transformer, and of Model.translate of Python.
struct TranslationOptions {
  LineTranslatorOptions options = {.search = {.beam = 4}};
  std::optional<std::vector<std::string>> end_tokens;  // as for EndTokens (inference/runtime/open_model.h)
  std::optional<bool> special_tokens;                  // Tokenizer::ReadSpecial
};
// Returns the rows of the options. They point into `translation`.
Hyperparameters TranslationRows(TranslationOptions* translation);

// Opens a model and returns its translator. Options without a flag in `given` get the defaults in the model's files.
// Prints notes on these files on stderr. Errors are those of UsageError.
absl::StatusOr<std::unique_ptr<LineTranslator>> OpenTranslator(const std::string& model, const GivenFlags& given,
                                                               TranslationOptions* translation);

}  // namespace weft

#endif  // WEFT_APPS_USE_GENERATOR_ROWS_H_
