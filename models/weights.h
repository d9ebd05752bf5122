// Weights that others published: tensors read from a file and brought to our names and layouts.
//
//   WEFT_ASSIGN_OR_RETURN(PublishedBert published, ReadBert("minilm"));
//   ...  // a graph of Bert(published.config), and a runner that creates its parameters
//   WEFT_RETURN_IF_ERROR(parameters.Set("minilm", published.weights.tensors()));
#ifndef WEFT_MODELS_WEIGHTS_H_
#define WEFT_MODELS_WEIGHTS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/core/arena.h"
#include "weft/core/safetensors.h"
#include "weft/models/bert.h"
#include "weft/models/gpt.h"
#include "weft/models/transformer.h"

namespace weft {

class Weights {
 public:
  static absl::StatusOr<Weights> ReadSafetensors(const std::string& path);

  absl::Span<const NamedTensor> tensors() const { return tensors_; }
  Tensor Add(std::string name, TensorType type);  // a new one, of zeros

  struct Rule {
    std::string from;             // a name, in which the first # stands for any text
    std::vector<std::string> to;  // the new name, in which # is that text; several: of equal parts of the rows; none:
                                  // the tensor is left out
    bool transpose = false;
  };
  // Does what the first rule that fits says, for each tensor; those that none fits stay as they are.
  absl::Status Apply(const std::vector<Rule>& rules);

 private:
  std::shared_ptr<const SafetensorsFile> file_;
  std::unique_ptr<Arena> arena_ = std::make_unique<Arena>();
  std::vector<NamedTensor> tensors_;
};

// A folder of Hugging Face's layout: config.json and model.safetensors. InvalidArgument, naming the key, for what the
// configuration has that the models here do not.
struct PublishedBert {
  BertConfig config;
  Weights weights;
};
absl::StatusOr<PublishedBert> ReadBert(const std::string& folder);
struct PublishedGpt {
  GptConfig config;
  Weights weights;
};
absl::StatusOr<PublishedGpt> ReadGpt(const std::string& folder);  // of model_type gpt2, llama or minGPT's gpt-nano
// A checkpoint of llama2.c: a header of 7 numbers (or of 256 bytes, version 1), then the weights in f32.
absl::StatusOr<PublishedGpt> ReadLlama2c(const std::string& path);
struct PublishedTransformer {
  TransformerConfig config;
  Weights weights;
};
// A folder with config.json (d_model, num_heads, ffn_dim, ...) and model.safetensors of CTranslate2's names.
absl::StatusOr<PublishedTransformer> ReadCTranslate2(const std::string& folder);

}  // namespace weft

#endif  // WEFT_MODELS_WEIGHTS_H_
