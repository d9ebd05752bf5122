// These functions read and write published models. They convert tensors to this project's names and layouts, and back.
//
//   WEFT_ASSIGN_OR_RETURN(PublishedBert published, ReadModelOf<PublishedBert>("minilm"));
//   ...  // record a graph of Bert(published.config), and create a runner, which creates the parameters
//   WEFT_RETURN_IF_ERROR(parameters.Set("minilm", published.weights.tensors()));
//   WEFT_RETURN_IF_ERROR(WriteModel("copy", published));  // the folder exists
//
// A model that is read computes exactly what its configuration asks for (config_json.h). If the tensors of a folder are
// not exactly the model's, with their shapes, the error is FailedPrecondition. It lists up to 8 missing, unexpected or
// misshapen tensors. The option ignore_extra_tensors leaves unexpected tensors out.
#ifndef WEFT_FORMATS_WEIGHTS_H_
#define WEFT_FORMATS_WEIGHTS_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weft/base/arena.h"
#include "weft/core/parameters.h"
#include "weft/core/safetensors.h"
#include "weft/models/bert.h"
#include "weft/models/gpt.h"
#include "weft/models/lora.h"
#include "weft/models/transformer.h"
#include "weft/models/vit.h"
#include "weft/text/data/text_task.h"

namespace weft {

// A Weights is a list of named tensors. A copy of the list shares the tensors' bytes.
class Weights {
 public:
  // Reads a file of weights, or the weights of a folder: model.safetensors, the files that its index lists, or those of
  // another container, such as pytorch_model.bin (weight_files.h). Floating-point tensors become f32, exactly,
  // except f64, which is rounded.
  static absl::StatusOr<Weights> Read(const std::string& path);
  // The same, but tensors of bf16 and of block formats stay as they are in the file.
  static absl::StatusOr<Weights> ReadStored(const std::string& path,
                                            WantedChecksum checksum = WantedChecksum::kIfPresent);

  // Checks that the tensors are those of `wanted`, as Parameters::Check does. If only unexpected tensors differ, moves
  // them to `extra`.
  absl::Status Fit(absl::Span<const ParameterSpec> wanted);
  // Returns "'NAME' TYPE" for each tensor that Fit has left out.
  const std::vector<std::string>& extra() const { return extra_; }
  // Returns FailedPrecondition if Fit has left out tensors.
  absl::Status CheckNoExtra() const;
  // Returns the path of the file that was read, or of the index of several files.
  const std::string& path() const { return path_; }

  absl::Span<const NamedTensor> tensors() const { return tensors_; }
  // The names and types of tensors that were not read (TensorFile::unread).
  absl::Span<const std::pair<std::string, std::string>> unread() const { return unread_; }
  // Returns the tensor called `name`, or null.
  const Tensor* Find(absl::string_view name) const;
  // Reports whether the name of any tensor begins with `prefix`.
  bool Has(absl::string_view prefix) const;
  // Makes tensors of bf16 and of block formats f32. Returns ResourceExhausted if there is no memory.
  absl::Status ConvertToF32();
  // Adds a tensor of zeros.
  absl::StatusOr<Tensor> Add(const std::string& name, TensorType type);
  // Adds a copy of `from`, which may be a tensor of this list.
  absl::Status AddCopy(const std::string& name, Tensor from);

  // One change of a tensor's name or layout.
  struct Rule {
    std::string from;  // the old name; its first # matches any text
    // The new name, in which # stands for the matched text. Several names split the rows of the tensor into parts,
    // which are equal unless `parts` has their proportions. Without a name the tensor is dropped.
    std::vector<std::string> to;
    bool transpose = false;
    std::vector<int64_t> parts = {};
    int64_t groups = 1;  // the rows are this number of equal groups, and each group has rows of all parts

    int64_t part(size_t i) const { return parts.empty() ? 1 : parts[i]; }
  };
  // Applies to each tensor the first rule that matches its name. A tensor that no rule matches stays as it is. Returns
  // InvalidArgument if two tensors would get the same name, or if a tensor can't be split or transposed.
  absl::Status Apply(const std::vector<Rule>& rules);
  // Applies the rules backwards: gives tensors with the new names the old ones. For a rule with several names, the f32
  // tensors of these names become one tensor with all their rows, in this order.
  absl::Status Revert(const std::vector<Rule>& rules);
  // Makes one tensor of `name` and `copy`, for which the model has one parameter: takes the tensor that is there, and
  // drops `copy` if both are there and equal. Otherwise both stay, and the error is InvalidArgument.
  absl::Status Tie(const std::string& name, const std::string& copy);

 private:
  // Returns a tensor of zeros for the weight `name`, or ResourceExhausted.
  absl::StatusOr<Tensor> Allocate(absl::string_view name, const TensorType& type);
  // Replaces the tensors rule.to by one tensor rule.from with all their rows.
  absl::Status Join(const Rule& rule);

  std::string path_;  // WeightFiles::path
  std::shared_ptr<Arena> arena_ = std::make_shared<Arena>();
  std::vector<std::shared_ptr<const TensorFile>> files_;  // which own the bytes of tensors that are in place
  std::vector<NamedTensor> tensors_;
  std::vector<std::pair<std::string, std::string>> unread_;  // names and types, as in TensorFile
  std::vector<std::string> extra_;
};

// Returns DataLoss if a weight is NaN or infinite, because all results would be garbage. The error names the tensor.
// `path`: the model, for errors.
absl::Status CheckFinite(const std::string& path, const Weights& weights);
// After CheckFinite, provides the weights of a model that is to be used to `parameters` that no graph has created yet:
// they will be the weights themselves, without a copy, or weights in another dtype (Parameters::Provide).
absl::Status ProvideFiniteWeights(const std::string& path, const Weights& weights, Parameters* parameters);

// Each Published struct is a model that was read: configuration and weights. kFamily describes its kind
// (model_formats.h).
struct ModelFamily;

struct PublishedGpt {
  GptConfig config;
  Weights weights;
  std::string model_type = "";  // as which it was read, so that it is written as the same; empty: any
  static const ModelFamily kFamily;
};
struct PublishedBert {
  BertConfig config;
  // The encoder's weights, and those of each head that the checkpoint has. A head's names begin with pooler.dense.,
  // cls.predictions., cls.seq_relationship., qa_outputs., discriminator_predictions., classifier. or, of
  // config.shared_transform, head. Each head is complete or absent.
  Weights weights;
  std::vector<std::string> labels;      // the classifier's classes; empty without a classifier
  TextTask task = TextTask::kSequence;  // of the classifier
  LabelScores scores = LabelScores::kSoftmax;
  bool pairs = false;   // a run's texts are pairs; published models do not say so
  bool choice = false;  // the classifier gives one number, for one of several answers to choose from; it has no labels
  // Reports whether the weights have the head that guesses masked tokens.
  bool masked() const {
    return weights.Has("cls.predictions.") || (weights.Has("head.") && !weights.Has("classifier."));
  }
  static const ModelFamily kFamily;
};
// The special tokens of a translation model by their texts, as config.json of CTranslate2 names them.
struct TokenNames {
  std::string unknown = "<unk>", begin = "<s>", end = "</s>";
  std::string start = "<s>";                      // the decoder reads it first
  bool source_begin = false, source_end = false;  // whether sources have the begin token and the end token
};
struct PublishedTransformer {
  TransformerConfig config;
  Weights weights;
  std::optional<TokenNames> tokens;  // unset: the files of the tokenizer and generation_config.json tell
  static const ModelFamily kFamily;
};
struct PublishedVit {
  VitConfig config;
  Weights weights;
  std::vector<std::string> labels;  // the classifier's classes; empty without a classifier
  LabelScores scores = LabelScores::kSoftmax;
  VitTask task = VitTask::kClassify;  // decides which head the weights have
  static const ModelFamily kFamily;
};
// A model of any family.
using PublishedModel = std::variant<PublishedGpt, PublishedBert, PublishedTransformer, PublishedVit>;

// Returns the weights of a model of any family.
inline Weights& WeightsOf(PublishedModel& model) {
  return std::visit([](auto& published) -> Weights& { return published.weights; }, model);
}
inline const Weights& WeightsOf(const PublishedModel& model) {
  return std::visit([](const auto& published) -> const Weights& { return published.weights; }, model);
}

struct ReadModelOptions {
  bool ignore_extra_tensors = false;  // leaves out tensors that the model does not have (Weights::extra)
  // If set, a model of another family is an error, which is found before the weights are read.
  const ModelFamily* family = nullptr;
};
// Reads a model in any format of model_formats.h. `path`: a file of GGUF or llama2.c; a folder with a file of GGUF and
// no config.json; a folder of an adapter (adapters.h); or a folder with the config.json of a training run, of weft
// quantize or of another program. Each format has a file, such as nano_gpt.cc, whose first comment describes it.
absl::StatusOr<PublishedModel> ReadModel(const std::string& path, const ReadModelOptions& options = {});
// The same for a model that must be of one family: ReadModelOf<PublishedGpt>("gpt2").
template <class Model>
absl::StatusOr<Model> ReadModelOf(const std::string& path, ReadModelOptions options = {}) {
  options.family = &Model::kFamily;
  absl::StatusOr<PublishedModel> model = ReadModel(path, options);
  if (!model.ok()) return model.status();
  return std::get<Model>(*std::move(model));
}

struct WriteModelOptions {
  // In the formats weft and gguf: the dtype of the weights that may have fewer bytes than f32. Unset: weights keep the
  // dtypes that they have.
  std::optional<DType> weights;
  int llama2c_version = 0;  // version of a llama2.c file: 0 or 1
  // In the format huggingface, a Transformer that no class of Hugging Face has is an error (true), or is written with
  // this project's own model_type "transformer" (false).
  bool published_classes_only = false;
};
// Writes a model. `format`: the name of a format of model_formats.h. If it can't express the model, the error is
// InvalidArgument, for example "a configuration of gpt2 cannot say that positions are rotary". Weights are written in
// f32 with unchanged bits. An existing file is replaced as a whole.
//
// docs/formats.md lists the classes, files and names of huggingface, gguf, onnx and ctranslate2; nano_gpt.cc and
// llama2c.cc describe the other two. Some formats also use files that are in `folder`. gguf takes in the tokenizer and
// generation_config.json. For a Transformer in huggingface, tokenizer.json gets the end token in its input format, and
// tokenizer_config.json is written. ctranslate2 gets a vocabulary.
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

// How a folder of sentence-transformers makes one vector of a text.
struct SentenceFormat {
  Pooling pooling = Pooling::kMean;
  std::string prompt;       // comes before each text
  bool lower_case = false;  // Tokenizer::Lowercase
  int64_t max_length = 0;   // number of tokens, special ones included, to which texts are cut; 0: none are cut
};
// Reads modules.json, the files that it names, config_sentence_transformers.json, the first file of kSentenceConfigs
// and model_max_length of tokenizer_config.json; of a GGUF file, its pooling. Missing files leave the defaults. Without
// a length in these files, texts are cut to the context of `config`, unless `folder` is a run. `prompt`: name of a
// prompt in the folder; "": the default prompt. Returns InvalidArgument for a module, kind of pooling or key that is
// not supported, and for a missing prompt.
absl::StatusOr<SentenceFormat> ReadSentenceFormat(const std::string& folder, const BertConfig& config,
                                                  const std::string& prompt = "");

// Returns the names and types of the weights in a checkpoint of `model`, by its configuration. A BERT's heads are
// optional: the result has a head if the model's `weights` have at least one tensor of this head.
std::vector<ParameterSpec> ParametersOf(const PublishedModel& model);

}  // namespace weft

#endif  // WEFT_FORMATS_WEIGHTS_H_
