// Models in the layouts of others: what formats/weights.h reads, written.
//
//   WEFT_RETURN_IF_ERROR(WriteHuggingFace("gpt2", PublishedGpt{config, weights}));   // a folder that is there
//
// InvalidArgument "a configuration of gpt2 cannot say that positions are rotary" and the like for a model that a layout
// can't express. Weights are f32, and their bits are kept. Files are replaced one by one, each as a whole.
#ifndef WEFT_FORMATS_WRITE_WEIGHTS_H_
#define WEFT_FORMATS_WRITE_WEIGHTS_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "absl/status/status.h"
#include "weft/formats/weights.h"

namespace weft {

// config.json and model.safetensors in the names and layouts of GPT2LMHeadModel, LlamaForCausalLM or
// MistralForCausalLM. A GPT-2 without biases gets biases of zeros; queries and keys of rotary positions in pairs are
// ordered for halves.
absl::Status WriteHuggingFace(const std::string& folder, const PublishedGpt& gpt);
// Of BertModel, or with heads of BertForPreTraining and its like, with the prefix "bert." and the labels. A classifier
// of the mean (Pooling::kMean) has no class there, and is refused.
absl::Status WriteHuggingFace(const std::string& folder, const PublishedBert& bert);
// Our own model_type "transformer", in names like Marian's.
absl::Status WriteHuggingFace(const std::string& folder, const PublishedTransformer& model);

// nanoGPT's model_args as config.json, and its model's state as model.safetensors. A model without biases is written
// with biases of zeros, unless its norms have none either.
absl::Status WriteNanoGpt(const std::string& folder, const PublishedGpt& gpt);
// A checkpoint of llama2.c, of version 0 or 1, in one file.
absl::Status WriteLlama2c(const std::string& path, const PublishedGpt& gpt, int version);
// As ReadCTranslate2 reads it.
absl::Status WriteCTranslate2(const std::string& folder, const PublishedTransformer& model);

// The two files of a folder, the weights first: where these can't be written, the folder is as it was.
absl::Status WriteModelFolder(const std::string& folder, const nlohmann::ordered_json& config, const Weights& weights);

}  // namespace weft

#endif  // WEFT_FORMATS_WRITE_WEIGHTS_H_
