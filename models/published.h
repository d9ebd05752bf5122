// What the readers and writers of published models share.
#ifndef WEFT_MODELS_PUBLISHED_H_
#define WEFT_MODELS_PUBLISHED_H_

#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "weft/models/weights.h"

namespace weft {

// The config.json of a folder, and the names of its files.
std::string ConfigPath(const std::string& folder);
std::string WeightsPath(const std::string& folder);
absl::StatusOr<nlohmann::ordered_json> ReadConfig(const std::string& folder);

// Names and layouts of one folder's tensors: model.safetensors with each list of rules applied in turn.
absl::StatusOr<Weights> ReadFolderWeights(const std::string& folder,
                                          const std::vector<std::vector<Weights::Rule>>& rules);

// GPT-2's layers that Hugging Face stores as [in, out], transposed.
std::vector<Weights::Rule> TransposeGpt2();

// The same model with queries and keys ordered for the other layout of rotary positions; unchanged if it has this one.
absl::StatusOr<PublishedGpt> WithRotary(const PublishedGpt& gpt, RotaryLayout layout);
// The same model with biases, of zeros where it had none.
absl::StatusOr<PublishedGpt> WithBiases(const PublishedGpt& gpt);

}  // namespace weft

#endif  // WEFT_MODELS_PUBLISHED_H_
