// These functions read and write all options of a model as one JSON object. It has the keys of published models
// (config_json.h) and, for what these can't express, the keys of models/options.h:
//
//   {"model_type": "gpt2", "n_layer": 4, ..., "window": "8,0", "gated": true}
//
//   GptConfig config;
//   WEFT_RETURN_IF_ERROR(ReadModelConfig(json, &config));
//   const absl::StatusOr<nlohmann::ordered_json> same = WriteModelConfig(config);
#ifndef WEFT_FORMATS_MODEL_OPTIONS_H_
#define WEFT_FORMATS_MODEL_OPTIONS_H_

#include <nlohmann/json_fwd.hpp>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "weft/models/bert.h"
#include "weft/models/gpt.h"
#include "weft/models/transformer.h"
#include "weft/models/vit.h"

namespace weft {

// The GPT that `weft train gpt` trains without options: a character model of 0.8 million parameters. The vocabulary is
// 0 until a tokenizer gives its size.
GptConfig CharacterGpt();

// Sets `config`, of any family, from `json`. With a "model_type", `json` describes a whole model, as published. Without
// one, it has keys of models/options.h only, and other options keep their values. Returns InvalidArgument for an
// unknown key, with the nearest known key, or for a wrong value.
template <class Config>
absl::Status ReadModelConfig(const nlohmann::ordered_json& json, Config* config);
// Returns `config` as a whole model.
template <class Config>
absl::StatusOr<nlohmann::ordered_json> WriteModelConfig(const Config& config);

// Sets `config` from the config.json of a training run. The run's options are keys at the top level; "model", if it is
// there, describes the whole model.
template <class Config>
absl::Status ReadRunModel(const nlohmann::ordered_json& run, Config* config);

}  // namespace weft

#endif  // WEFT_FORMATS_MODEL_OPTIONS_H_
