// These functions write models in the formats that formats/weights.h reads.
//
//   WEFT_RETURN_IF_ERROR(WriteModel("gpt2", PublishedGpt{config, weights}));              // the folder exists
//   WEFT_RETURN_IF_ERROR(WriteModel("nano", PublishedGpt{config, weights}, "nanogpt"));
//
// If a format can't express a model, the error is InvalidArgument, for example "a configuration of gpt2 cannot say that
// positions are rotary". Weights are written in f32 with unchanged bits. An existing file is replaced as a whole.
#ifndef WEFT_FORMATS_WRITE_WEIGHTS_H_
#define WEFT_FORMATS_WRITE_WEIGHTS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "weft/core/parameters.h"
#include "weft/formats/model_formats.h"
#include "weft/formats/weights.h"
#include "weft/models/lora.h"

namespace weft {

// Writes a model. `format`: the name of a format of model_formats.h.
//
// huggingface: config.json and model.safetensors in the names and layouts of the Hugging Face class that has the model:
//   GPT          GPT2LMHeadModel, LlamaForCausalLM or MistralForCausalLM. A GPT-2 without biases gets biases of zeros.
//                If rotary positions are in pairs, queries and keys are reordered for halves.
//   BERT         BertModel; with heads, BertForPreTraining or a similar class, with the prefix "bert." and labels. A
//                classifier of the mean (Pooling::kMean) is an error, because Hugging Face has no such class.
//   Transformer  the first of these classes that has it: MarianMTModel (norms after each layer),
//                PegasusForConditionalGeneration (norms first, one token table), BlenderbotForConditionalGeneration (as
//                Pegasus, with a table of positions), with a generation_config.json. If `folder` has a tokenizer.json,
//                adds the end token to its input format, and writes tokenizer_config.json: AutoTokenizer then gives the
//                ids that the model was trained on. If no class has it, this project's own model_type "transformer",
//                with names like Marian's, or an error that names the option that each class lacks.
//   ViT          ViTForImageClassification
// nanogpt: nanoGPT's model_args as config.json, and the model's state as model.safetensors. If `config.bias` is false
// and all biases of norms are 0, writes no biases. Otherwise missing biases are written as zeros.
// llama2.c: a checkpoint of llama2.c as one file, model.bin.
// ctranslate2: the files that the program CTranslate2 opens: model.bin, config.json and, if `folder` has a tokenizer
// whose file spells its tokens, a vocabulary. A model as OpenNMT trains them also gets a model.safetensors.
absl::Status WriteModel(const std::string& folder, const PublishedModel& model,
                        absl::string_view format = "huggingface", const WriteModelOptions& options = {});

// The adapters of a training.
struct TrainedAdapter {
  LoraOptions lora;
  std::string base;        // path of the base model; "" if the base has no file
  std::string model_type;  // "bert", "gpt2": of the base model in Hugging Face, for the names of its layers
};
// Writes the trained weights of `parameters` to both files of an adapter (adapters.h) in `folder`, with the names that
// PEFT gives them. Layers that are trained without adapters are listed in modules_to_save.
absl::Status WriteAdapter(const std::string& folder, const TrainedAdapter& adapter, const Parameters& parameters);

}  // namespace weft

#endif  // WEFT_FORMATS_WRITE_WEIGHTS_H_
