// What the readers and writers of published models share.
#ifndef WEFT_FORMATS_PUBLISHED_H_
#define WEFT_FORMATS_PUBLISHED_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "weft/formats/weights.h"

namespace weft {

enum class ModelKind : uint8_t { kGpt, kBert, kTransformer, kVit };
// By model_type, as Hugging Face has it, where one that is not known is left to GPTs, which name it; without it, by
// keys of nanoGPT or CTranslate2. InvalidArgument for a config.json of none of them.
absl::StatusOr<ModelKind> KindOfConfig(const nlohmann::ordered_json& config);

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

#endif  // WEFT_FORMATS_PUBLISHED_H_
