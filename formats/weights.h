// Weights that others published: tensors read from a file and brought to our names and layouts.
//
//   WEFT_ASSIGN_OR_RETURN(PublishedBert published, ReadBert("minilm"));
//   ...  // a graph of Bert(published.config), and a runner that creates its parameters
//   WEFT_RETURN_IF_ERROR(parameters.Set("minilm", published.weights.tensors()));
//
// What is read has been checked: the configuration is one that the model computes exactly (config_json.h), and the
// tensors are exactly the model's, with their shapes; else FailedPrecondition lists the missing, unexpected and
// misshapen ones. formats/write_weights.h goes the other way.
#ifndef WEFT_FORMATS_WEIGHTS_H_
#define WEFT_FORMATS_WEIGHTS_H_

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weft/core/arena.h"
#include "weft/core/parameters.h"
#include "weft/core/safetensors.h"
#include "weft/models/bert.h"
#include "weft/models/gpt.h"
#include "weft/models/transformer.h"
#include "weft/models/vit.h"

namespace weft {

// A list of tensors by name. A copy shares their bytes.
class Weights {
 public:
  // Floating-point tensors become f32: f16 and bf16 exactly, f64 rounded.
  static absl::StatusOr<Weights> ReadSafetensors(const std::string& path);

  absl::Span<const NamedTensor> tensors() const { return tensors_; }
  const Tensor* Find(absl::string_view name) const;                      // null if there is none
  bool Has(absl::string_view prefix) const;                              // a tensor whose name begins so
  absl::StatusOr<Tensor> Add(const std::string& name, TensorType type);  // a new one, of zeros

  struct Rule {
    std::string from;             // a name, in which the first # stands for any text
    std::vector<std::string> to;  // the new name, in which # is that text; several: of equal parts of the rows; none:
                                  // the tensor is left out
    bool transpose = false;
  };
  // Does what the first rule that fits says, for each tensor; those that none fits stay as they are. InvalidArgument if
  // two would have one name.
  absl::Status Apply(const std::vector<Rule>& rules);
  // The opposite of a rule with several names: the rows of all, one after the other, become one tensor.
  absl::Status Join(const std::vector<std::string>& from, const std::string& to);

 private:
  std::shared_ptr<Arena> arena_ = std::make_shared<Arena>();
  std::shared_ptr<const SafetensorsFile> file_;
  std::vector<NamedTensor> tensors_;
};

struct PublishedGpt {
  GptConfig config;
  Weights weights;
};
struct PublishedBert {
  BertConfig config;
  Weights weights;  // of the encoder and of the heads that the checkpoint has, whole: pooler.dense., cls.predictions.,
                    // cls.seq_relationship., classifier.
  std::vector<std::string> labels;  // of the classifier; none without one
};
struct PublishedTransformer {
  TransformerConfig config;
  Weights weights;
};
struct PublishedVit {
  VitConfig config;
  Weights weights;
  std::vector<std::string> labels;
};

// Folders of Hugging Face's layout, config.json and model.safetensors: of model_type gpt2, llama, mistral or minGPT's
// gpt-nano; of bert, with or without heads; and of our own transformer, in names like Marian's.
absl::StatusOr<PublishedGpt> ReadGpt(const std::string& folder);
absl::StatusOr<PublishedBert> ReadBert(const std::string& folder);
absl::StatusOr<PublishedTransformer> ReadTransformer(const std::string& folder);
// Such a folder of model_type vit, with ViTForImageClassification's head.
absl::StatusOr<PublishedVit> ReadVit(const std::string& folder);
// How a folder of sentence-transformers makes a text's vector of its tokens': what the pooling's config.json says that
// modules.json names; the mean without one. InvalidArgument for what Pooling has not.
absl::StatusOr<Pooling> ReadPooling(const std::string& folder, int64_t width);
// A folder with nanoGPT's model_args as config.json, and its model's state as model.safetensors. Norms without biases
// get biases of zeros.
absl::StatusOr<PublishedGpt> ReadNanoGpt(const std::string& folder);
// A checkpoint of llama2.c: a header of 7 numbers (or of 256 bytes, version 1), then the weights in f32.
absl::StatusOr<PublishedGpt> ReadLlama2c(const std::string& path);
// A folder with config.json (d_model, num_heads, ffn_dim, ...) and model.safetensors of CTranslate2's names.
absl::StatusOr<PublishedTransformer> ReadCTranslate2(const std::string& folder);

// Any of these, by what the file or the folder's config.json looks like.
using PublishedModel = std::variant<PublishedGpt, PublishedBert, PublishedTransformer>;
absl::StatusOr<PublishedModel> ReadModel(const std::string& path);

// What a checkpoint of the model holds; of BERT, with the heads of which `weights` has any part.
std::vector<ParameterSpec> ParametersOf(const GptConfig& config);
std::vector<ParameterSpec> ParametersOf(const BertConfig& config, const Weights& weights);
std::vector<ParameterSpec> ParametersOf(const TransformerConfig& config);
std::vector<ParameterSpec> ParametersOf(const VitConfig& config);

}  // namespace weft

#endif  // WEFT_FORMATS_WEIGHTS_H_
