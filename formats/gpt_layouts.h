// These functions convert between the tensor layouts in which several formats store a GPT. The layouts differ in
// transposed layers, name prefixes, rotary order and biases. No other folder includes this header.
#ifndef WEFT_FORMATS_GPT_LAYOUTS_H_
#define WEFT_FORMATS_GPT_LAYOUTS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "weft/formats/weights.h"

namespace weft {

// Returns the name of the token table's layer.
absl::string_view TokenTable(const GptConfig& config);

// Returns rules that drop tensors that PyTorch saves but that are no parameters: causal masks and rotary frequencies.
std::vector<Weights::Rule> GptTensorsToDrop();

// Returns the model with the rows of queries and keys reordered for `layout`. Without rotary positions, the model stays
// unchanged.
absl::StatusOr<PublishedGpt> WithRotary(const PublishedGpt& gpt, RotaryLayout layout);
// Returns the model with all biases. A bias that the model lacked is filled with zeros.
absl::StatusOr<PublishedGpt> WithBiases(const PublishedGpt& gpt);

}  // namespace weft

#endif  // WEFT_FORMATS_GPT_LAYOUTS_H_
