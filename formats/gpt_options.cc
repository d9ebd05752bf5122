// The activation is an option of type text, so that a configuration file can name it. Finish converts the name.
#include "weft/formats/gpt_options.h"

#include <nlohmann/json.hpp>

#include "weft/core/status.h"

namespace weft {

Hyperparameters ModelHyperparameters(GptModelOptions* options) {
  GptConfig& model = options->model;
  return {
      {"context", "maximum number of tokens that a prediction sees", &model.context, {.low = 1, .high = 1e6}},
      {"layers", "number of decoder blocks", &model.layers, {.low = 1, .high = 1e4}},
      {"heads", "attention heads of each block", &model.heads, {.low = 1, .high = 1e4}},
      {"width", "width of the model, a multiple of heads", &model.width, {.low = 1, .high = 1e6}},
      {"feed-forward",
       "width of the feed-forward layers; 0: 4 times the model's width",
       &model.feed_forward,
       {.low = 0, .high = 1e7}},
      {"dropout", "probability of dropout", &model.dropout, {.low = 0, .high = 0.99}},
      {"activation",
       "activation of the feed-forward layers",
       &options->activation,
       {.choices = {"gelu-tanh", "gelu", "relu"}}},
      {"pre-norm", "normalise before each layer of a block, not after it", &model.pre_norm},
      {"tied-head", "use the token table as the weight of the output layer", &model.tied_head},
      {"bias", "give linear layers biases", &model.bias},
  };
}

absl::Status Finish(GptModelOptions* options) {
  GptConfig& model = options->model;
  model.activation = options->activation == "relu"   ? Activation::kRelu
                     : options->activation == "gelu" ? Activation::kGelu
                                                     : Activation::kGeluTanh;
  GptConfig with_vocabulary = model;
  if (with_vocabulary.vocabulary == 0) with_vocabulary.vocabulary = 1;  // unknown until a tokenizer sets it
  return Validate(with_vocabulary);
}

absl::StatusOr<GptModelOptions> GptModelOptionsFromJson(const nlohmann::ordered_json& run) {
  GptModelOptions options;
  const Hyperparameters rows = ModelHyperparameters(&options);
  nlohmann::ordered_json own = nlohmann::ordered_json::object();
  for (const Hyperparameter& row : rows) {
    if (const auto found = run.find(row.key()); found != run.end()) own[row.key()] = *found;
  }
  WEFT_RETURN_IF_ERROR(SetFromJson(own, rows));
  WEFT_RETURN_IF_ERROR(Finish(&options));
  return options;
}

}  // namespace weft
