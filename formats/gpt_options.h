// GptModelOptions are the options of a GPT to train. A command line, a configuration file and a run's config.json share
// them as rows of one table (core/hyperparameters.h).
//
//   GptModelOptions options;
//   WEFT_RETURN_IF_ERROR(SetFromJson(json, ModelHyperparameters(&options)));   // {"layers": 6, "pre_norm": false}
//   WEFT_RETURN_IF_ERROR(Finish(&options));                                    // now options.model is complete
#ifndef WEFT_FORMATS_GPT_OPTIONS_H_
#define WEFT_FORMATS_GPT_OPTIONS_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "weft/core/hyperparameters.h"
#include "weft/models/gpt.h"

namespace weft {

// The defaults describe a character model of 0.8 million parameters.
struct GptModelOptions {
  // The vocabulary is 0 until a tokenizer gives its size.
  GptConfig model = {.vocabulary = 0, .context = 64, .layers = 4, .heads = 4, .width = 128};
  std::string activation = "gelu-tanh";
};

// Returns the rows context, layers, heads, width, feed-forward, dropout, activation, pre-norm, tied-head and bias.
Hyperparameters ModelHyperparameters(GptModelOptions* options);
// Sets `options->model.activation` from its name, and validates the model. Call Finish after all options are set.
absl::Status Finish(GptModelOptions* options);
// Reads the model's options from a run's config.json, which also has other keys, and calls Finish.
absl::StatusOr<GptModelOptions> GptModelOptionsFromJson(const nlohmann::ordered_json& run);

}  // namespace weft

#endif  // WEFT_FORMATS_GPT_OPTIONS_H_
