// These functions convert between the tensor layouts in which several formats store a GPT. The layouts differ in
// transposed layers, name prefixes, rotary order and biases. No other folder includes this header.
#ifndef WEFT_FORMATS_GPT_LAYOUTS_H_
#define WEFT_FORMATS_GPT_LAYOUTS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "weft/formats/weights.h"

namespace weft {

// Validates a configuration that was read. If a dropout is given but equals `dropout`, resets it.
absl::StatusOr<GptConfig> CheckedGptConfig(GptConfig config);

// Returns rules that transpose the layers that Hugging Face's GPT-2 stores as [in, out].
std::vector<Weights::Rule> TransposedGpt2Weights();
// Returns rules that put "transformer." before every name except the head's.
std::vector<Weights::Rule> Gpt2Prefix();
// Returns rules that drop tensors that PyTorch stores beside parameters: causal masks and, if it is tied, the head.
std::vector<Weights::Rule> GptTensorsToDrop(const GptConfig& config);

// Returns the model with the rows of queries and keys reordered for another rotary layout.
absl::StatusOr<PublishedGpt> WithRotary(const PublishedGpt& gpt, RotaryLayout layout);
// Returns the model with all biases; a bias that the model did not have is zeros.
absl::StatusOr<PublishedGpt> WithBiases(const PublishedGpt& gpt);

}  // namespace weft

#endif  // WEFT_FORMATS_GPT_LAYOUTS_H_
