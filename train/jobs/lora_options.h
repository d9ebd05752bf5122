// The options of low-rank adapters (models/lora.h) that all trainings share, and the files that hold trained adapters.
//
//   LoraOptions lora = {.targets = "*.query,*.value", .also_train = "classifier"};
//   Append(LoraHyperparameters(&lora), &table);                        // "lora-rank", "lora-alpha", ...
//   WEFT_RETURN_IF_ERROR(SaveAdapter(lora, init, model, parameters, run.path()));
#ifndef WEFT_TRAIN_JOBS_LORA_OPTIONS_H_
#define WEFT_TRAIN_JOBS_LORA_OPTIONS_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "absl/status/status.h"
#include "weft/core/hyperparameters.h"
#include "weft/core/parameters.h"
#include "weft/models/lora.h"

namespace weft {

// Returns rows that point into `options`, which must outlive them.
Hyperparameters LoraHyperparameters(LoraOptions* options);
// Returns " (1024 of them trained)", the number of trained weights, or "" if the rank is 0.
std::string CountTrained(const LoraOptions& options, const Parameters& parameters);
// Writes the adapters and other trained weights to `folder` as PEFT does (formats/adapters.h), unless the rank is 0.
// `base`: path of the weights with which the training began, or "". `model`: the model's configuration in the keys of
// Hugging Face.
absl::Status SaveAdapter(const LoraOptions& options, const std::string& base, const nlohmann::ordered_json& model,
                         const Parameters& parameters, const std::string& folder);

}  // namespace weft

#endif  // WEFT_TRAIN_JOBS_LORA_OPTIONS_H_
