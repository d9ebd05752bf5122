// Translates between the metadata of GGUF files and config.json, which describe the same models by different keys. The
// table of this file has the architectures of llama.cpp that Weft supports:
//
//   absl::StatusOr<nlohmann::ordered_json> config = ConfigOfGguf(file.metadata(), file.tensors());
//   // {"gguf": "llama", "model_type": "llama", "hidden_size": 576, ...}
//
// To add an architecture, add its row to the table in gguf_keys.cc. No other folder includes this header.
#ifndef WEFT_FORMATS_GGUF_KEYS_H_
#define WEFT_FORMATS_GGUF_KEYS_H_

#include <nlohmann/json_fwd.hpp>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/core/safetensors.h"
#include "weft/formats/published.h"
#include "weft/formats/weights.h"
#include "weft/models/attention.h"

namespace weft {

// Marks a config.json that a GGUF file gives. The value is its general.architecture.
inline constexpr char kGgufMark[] = "gguf";
// The key of such a config.json for the pooling of an encoder, with the value that a Pooling module's config.json has.
inline constexpr char kGgufPooling[] = "gguf_pooling";
// The tensor with the numbers by which Llama 3's scaling divides the frequencies of rotary positions.
inline constexpr char kGgufFactors[] = "rope_freqs.weight";

using GgufName = std::pair<const char*, const char*>;  // in a GGUF file and in a published model
// The keys of the tokens that end a text, which are a list in a published model. The last three are only read.
inline constexpr GgufName kGgufEndTokens[] = {
    {"tokenizer.ggml.eos_token_id", "eos_token_id"},     {"tokenizer.ggml.eot_token_id", "eos_token_id"},
    {"tokenizer.ggml.eom_token_id", "eos_token_id"},     {"tokenizer.ggml.fim_pad_token_id", "eos_token_id"},
    {"tokenizer.ggml.fim_rep_token_id", "eos_token_id"}, {"tokenizer.ggml.fim_sep_token_id", "eos_token_id"}};
// The key of the temperature. If it is above 0, texts are sampled; if it is 0, the likeliest token is chosen.
inline constexpr char kGgufTemperature[] = "general.sampling.temp";
// The settings of sampling, with their keys in generation_config.json.
inline constexpr GgufName kGgufSampling[] = {{kGgufTemperature, "temperature"},
                                             {"general.sampling.top_k", "top_k"},
                                             {"general.sampling.top_p", "top_p"},
                                             {"general.sampling.min_p", "min_p"},
                                             {"general.sampling.penalty_repeat", "repetition_penalty"},
                                             {"tokenizer.ggml.suppress_tokens", "suppress_tokens"}};

// An architecture of llama.cpp has the same name as the model_type of config.json.
struct GgufArchitecture {
  const char* name;
  absl::Span<const GgufName> keys;     // without the name of the architecture and a dot
  absl::Span<const LayerName> layers;  // their names in a GGUF file and in the published model
  GgufName activation;                 // the key of config.json and the value that the published model computes with
  bool in_pairs = false;               // whether rotary positions turn neighbouring features
  bool encoder = false;                // a BERT; otherwise a GPT
};

// Returns the architecture that is called `name`, a text, or InvalidArgument.
absl::StatusOr<const GgufArchitecture*> FindGgufArchitecture(const nlohmann::ordered_json& name);
// Returns the rules from the names of tensors in a GGUF file to those of the model.
std::vector<Weights::Rule> RulesOf(const GgufArchitecture& architecture);

// Returns the config.json of a model with this metadata and these tensors, with kGgufMark. Returns InvalidArgument,
// with the key's name, if a key has a value that Weft can't follow.
absl::StatusOr<nlohmann::ordered_json> ConfigOfGguf(const nlohmann::ordered_json& metadata,
                                                    absl::Span<const NamedTensor> tensors);
// Returns the metadata of a model with the published configuration `config`, except its tokenizer. `dtype`: the least
// precise one of its tensors.
nlohmann::ordered_json GgufOfConfig(const GgufArchitecture& architecture, const nlohmann::ordered_json& config,
                                    DType dtype);

// Returns the elements of the tensor kGgufFactors, one for each of the `width` / 2 pairs of features.
std::vector<float> RotaryFactors(int64_t width, double base, const RotaryScaling& scaling);

}  // namespace weft

#endif  // WEFT_FORMATS_GGUF_KEYS_H_
