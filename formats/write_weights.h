// These functions write models in the formats that formats/weights.h reads.
//
//   WEFT_RETURN_IF_ERROR(WriteHuggingFace("gpt2", PublishedGpt{config, weights}));   // the folder exists
//
// If a format can't express a model, the error is InvalidArgument, for example "a configuration of gpt2 cannot say that
// positions are rotary". Weights are written in f32 with unchanged bits. An existing file is replaced as a whole.
#ifndef WEFT_FORMATS_WRITE_WEIGHTS_H_
#define WEFT_FORMATS_WRITE_WEIGHTS_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "absl/status/status.h"
#include "weft/formats/weights.h"

namespace weft {

// Writes config.json and model.safetensors in the names and layouts of the Hugging Face class that has the model:
//   GPT          GPT2LMHeadModel, LlamaForCausalLM or MistralForCausalLM. A GPT-2 without biases gets biases of zeros.
//                If rotary positions are in pairs, queries and keys are reordered for halves.
//   BERT         BertModel; with heads, BertForPreTraining or a similar class, with the prefix "bert." and labels. A
//                classifier of the mean (Pooling::kMean) is an error, because Hugging Face has no such class.
//   Transformer  this project's own model_type "transformer", with names like Marian's
//   ViT          ViTForImageClassification
absl::Status WriteHuggingFace(const std::string& folder, const PublishedModel& model);

// Writes a Transformer in the first of these classes of Hugging Face that has it: MarianMTModel (norms after each
// layer), PegasusForConditionalGeneration (norms first, one token table), BlenderbotForConditionalGeneration (as
// Pegasus, with a table of positions). Writes config.json, generation_config.json and model.safetensors. If `folder`
// has a tokenizer.json, adds the end token to its input format, and writes tokenizer_config.json: AutoTokenizer then
// gives the ids that the model was trained on. The error names the option that each class lacks.
absl::Status WriteMarian(const std::string& folder, const PublishedTransformer& model);

// Writes nanoGPT's model_args as config.json, and the model's state as model.safetensors. If `config.bias` is false and
// all biases of norms are 0, writes no biases. Otherwise missing biases are written as zeros.
absl::Status WriteNanoGpt(const std::string& folder, const PublishedGpt& gpt);
// Writes a checkpoint of llama2.c as one file. `version`: 0 or 1.
absl::Status WriteLlama2c(const std::string& path, const PublishedGpt& gpt, int version);
// Writes the files that the program CTranslate2 opens: model.bin, config.json and, if `folder` has a tokenizer whose
// file spells its tokens, a vocabulary. A model as OpenNMT trains them also gets the model.safetensors that
// ReadCTranslate2 reads.
absl::Status WriteCTranslate2(const std::string& folder, const PublishedTransformer& model);

// Writes model.safetensors, then config.json. If the weights can't be written, the folder stays unchanged.
absl::Status WriteModelFolder(const std::string& folder, const nlohmann::ordered_json& config, const Weights& weights);

}  // namespace weft

#endif  // WEFT_FORMATS_WRITE_WEIGHTS_H_
