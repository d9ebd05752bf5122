#include "weft/apps/use/generator_rows.h"

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "weft/apps/flags.h"
#include "weft/core/status.h"

namespace weft {
namespace {

absl::Status SetLogitBias(absl::string_view text, std::vector<std::pair<int32_t, float>>* bias) {
  bias->clear();
  if (text.empty()) return absl::OkStatus();
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return InvalidArgument("got '", text, "', wanted a JSON object such as {\"50256\": -100}");
  for (const auto& [key, value] : json.items()) {
    int32_t token = 0;
    if (!absl::SimpleAtoi(key, &token) || !value.is_number()) {
      return InvalidArgument("'", key, "': ", value.dump(), " is not the number of a token and a number");
    }
    const nlohmann::json& number = value;
    bias->emplace_back(token, number.get<float>());
  }
  return absl::OkStatus();
}

std::string LogitBiasText(const std::vector<std::pair<int32_t, float>>& bias) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const auto& [token, number] : bias) json[absl::StrCat(token)] = number;
  return bias.empty() ? "" : json.dump();
}

}  // namespace

Hyperparameters GeneratorRows(TextGeneratorOptions* generator) {
  TextGeneratorOptions& options = *generator;
  SamplingOptions& sampling = options.generate.sampling;
  return {
      {"tokenizer",
       "tokenizer to use instead of the model's, as for weft tokenize",
       &options.tokenizer,
       {.group = "Model", .type = "FILE_OR_FOLDER"}},
      {"length", "maximum number of tokens to add to each text", &options.generate.length, {.low = 0, .group = "Text"}},
      {"temperature",
       "divides the logits: below 1 the text is more predictable, above 1 more varied; 0 picks the most likely token",
       &sampling.temperature,
       {.low = 0, .group = "Sampling"}},
      {"top-k",
       "sample among the k most likely tokens; 0: all tokens",
       &sampling.top_k,
       {.low = 0, .group = "Sampling"}},
      {"top-p",
       "sample among the fewest tokens whose probabilities sum to at least this; 1: all tokens",
       &sampling.top_p,
       {.low = 0, .high = 1, .group = "Sampling"}},
      {"min-p",
       "drop tokens whose probability is less than this fraction of the most likely token's; 0: none",
       &sampling.min_p,
       {.low = 0, .high = 1, .group = "Sampling"}},
      {"typical-p",
       "sample among the tokens whose log-probability is closest to its mean, as few as have at least this total "
       "probability; 1: all tokens",
       &sampling.typical_p,
       {.low = 0, .high = 1, .group = "Sampling"}},
      {"repetition-penalty",
       "makes tokens of the text less likely to come again: divides positive logits, multiplies negative ones; 1: no "
       "penalty",
       &sampling.repetition_penalty,
       {.group = "Sampling"}},
      {"logit-bias",
       "JSON object with a number for each token, which is added to the token's logit: {\"50256\": -100}",
       Hyperparameter::Text{[&sampling] { return LogitBiasText(sampling.logit_bias); },
                            [&sampling](absl::string_view text) { return SetLogitBias(text, &sampling.logit_bias); }},
       {.may_be_empty = true, .group = "Sampling", .type = "JSON"}},
      {"seed", "seed of the random numbers; equal seeds give equal texts", &sampling.seed, {.group = "Sampling"}},
      {"draft-model",
       "a smaller GPT with the same tokens, which guesses the next tokens; it changes no text, and is faster if it is "
       "often right",
       &options.draft_model,
       {.group = "Run", .type = "MODEL"}},
      {"draft",
       "guess up to this many tokens and check them at once; it changes no text. Without --draft-model, guesses are "
       "what followed the last tokens before, which is faster for texts that repeat themselves. With it, 0 means 4",
       &options.generate.draft,
       {.low = 0, .high = 47, .group = "Run"}},
      WeightsRow(&options.weights),
      {"threads",
       "number of threads; 0: one for each core. Results do not depend on it",
       &options.threads,
       {.low = 0, .high = 1024, .group = "Run"}},
  };
}

}  // namespace weft
