// Converts between the tensor layouts in which several formats store a GPT: transposed layers, name prefixes, rotary
// order, biases. No other folder includes this header.
#ifndef WEFT_FORMATS_GPT_LAYOUTS_H_
#define WEFT_FORMATS_GPT_LAYOUTS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "weft/formats/weights.h"

namespace weft {

// Validates a configuration that was read, and resets each dropout that is given but equals `dropout`.
absl::StatusOr<GptConfig> CheckedGptConfig(GptConfig config);

// Rules that transpose the layers that Hugging Face's GPT-2 stores as [in, out].
std::vector<Weights::Rule> TransposedGpt2Weights();
// Rules that put "transformer." before every name except the head's.
std::vector<Weights::Rule> Gpt2Prefix();
// Rules that drop what PyTorch's modules store besides parameters: the causal masks and, if it is tied, the head.
std::vector<Weights::Rule> GptTensorsToDrop(const GptConfig& config);

// Returns the same model with queries and keys reordered for another layout of rotary positions.
absl::StatusOr<PublishedGpt> WithRotary(const PublishedGpt& gpt, RotaryLayout layout);
// Returns the same model with biases, which are zeros where it had none.
absl::StatusOr<PublishedGpt> WithBiases(const PublishedGpt& gpt);

}  // namespace weft

#endif  // WEFT_FORMATS_GPT_LAYOUTS_H_
