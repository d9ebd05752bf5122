// These helpers are shared by the readers and writers of formats and model families. They give the paths of a folder's
// files, look up model_types and read weights. No other folder includes this header.
#ifndef WEFT_FORMATS_PUBLISHED_H_
#define WEFT_FORMATS_PUBLISHED_H_

#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/base/arena.h"
#include "weft/base/status.h"
#include "weft/core/block_formats.h"
#include "weft/core/safetensors.h"
#include "weft/core/tape.h"
#include "weft/formats/all_formats.h"
#include "weft/formats/config_keys.h"
#include "weft/formats/model_formats.h"
#include "weft/formats/weight_files.h"
#include "weft/formats/weights.h"
#include "weft/models/block.h"
#include "weft/models/options.h"
#include "weft/options/hyperparameters.h"
#include "weft/text/tokenizers/load_tokenizer.h"

namespace weft {

// The files that most formats have.
inline constexpr char kConfigFile[] = "config.json";
inline constexpr absl::string_view kFolderFiles[] = {kConfigFile, kWeightsFile};
// Format::families of the formats that hold only GPTs.
inline constexpr const ModelFamily* kOnlyGpt[] = {&PublishedGpt::kFamily};
// The names that sentence-transformers has had for the file with a Transformer's settings.
inline constexpr const char* kSentenceConfigs[] = {
    "sentence_bert_config.json",      "sentence_roberta_config.json", "sentence_distilbert_config.json",
    "sentence_camembert_config.json", "sentence_albert_config.json",  "sentence_xlm-roberta_config.json",
    "sentence_xlnet_config.json"};
// Returns the files of sentence-transformers that say how a GGUF file makes one vector of a text, if it says that.
std::vector<TokenizerFile> PoolingFiles(const std::string& gguf);
std::string ConfigPath(const std::string& folder);
absl::StatusOr<Json> ReadConfig(const std::string& folder);

// Writes model.safetensors, then config.json. If the weights can't be written, the folder stays unchanged.
absl::Status WriteModelFolder(const std::string& folder, const Json& config, const Weights& weights);
// Converts `tensors` to `dtypes` and writes them to a file by a SafetensorsWriter or GgufWriter, one after the other,
// so that no second copy of all weights is in memory. `create` is called with the names and types, and returns the
// writer.
template <class Create>
absl::Status WriteConverted(absl::Span<const NamedTensor> tensors, absl::Span<const DType> dtypes, Create create) {
  std::vector<std::pair<std::string, TensorType>> types;
  for (size_t i = 0; i < tensors.size(); ++i) {
    types.emplace_back(tensors[i].name, TensorType{dtypes[i], tensors[i].tensor.type.shape});
  }
  WEFT_ASSIGN_OR_RETURN(auto writer, create(types));
  for (size_t i = 0; i < tensors.size(); ++i) {
    Arena arena;
    const Tensor to = {types[i].second, arena.Allocate(types[i].second.bytes())};
    if (to.data == nullptr) return absl::ResourceExhaustedError("no memory for the weight '" + tensors[i].name + "'");
    ConvertWeight(tensors[i].tensor, to);
    WEFT_RETURN_IF_ERROR(writer.Add(to));
  }
  return writer.Finish();
}
// Writes `json`, indented. Bytes of its strings that are not UTF-8 become U+FFFD.
absl::Status WriteJson(const std::string& path, const Json& json);

// Returns the value of the key model_type, or null if `config` has no such key or its value is null.
const Json* FindModelType(const Json& config);
// Returns the family whose model_types include this value, or null.
const ModelFamily* FamilyOfType(const Json& model_type);

// Reads the weights of `folder` and applies the lists of rules one after the other.
absl::StatusOr<Weights> ReadFolderWeights(const std::string& folder,
                                          const std::vector<std::vector<Weights::Rule>>& rules);

// Returns the first option of `wanted`, with its value, that differs in `got`, the same rows of another model: "score
// is additive". Returns "" if there is none. Leaves out options that have no effect and, unless `training` is set,
// those that concern training only.
std::string Difference(const Hyperparameters& wanted, const Hyperparameters& got, bool training = true);

// Returns `attention` with 0 in place of widths and key_value_heads that are the defaults of plain attention.
AttentionVariant WithoutDefaults(AttentionVariant attention, int64_t heads, int64_t width);

// Returns the shortest list that `layers` layers repeat to the same `patterns`, or none if all are the default.
std::vector<AttentionPattern> ShortestPatterns(std::vector<AttentionPattern> patterns, int64_t layers);

// Returns the first option of `config`, with its value, that the Transformers of other programs lack, or "".
std::string UnusualOption(const TransformerConfig& config);

// Checks that `read`, the configuration that a reader finds in a written model, is `config`. Otherwise the keys can't
// express it, and the error is InvalidArgument "a configuration of MODEL_TYPE cannot say that OPTION is VALUE".
template <class Config>
absl::Status CheckReadBack(absl::string_view model_type, const Config& config, const absl::StatusOr<Config>& read,
                           bool training = true) {
  if (!read.ok()) return read.status();
  WEFT_RETURN_IF_ERROR(CheckExpressible(model_type, {{config.ablation != Ablation(), "parts are ablated"}}));
  if constexpr (requires { config.dtype; }) {
    WEFT_RETURN_IF_ERROR(CheckExpressible(model_type, {{config.dtype != read->dtype, "dtype is f64"}}));
  }
  // Values that mean the same become equal. Initializers are in no published file.
  const auto plain = [](Config config) {
    config = WithFeedForward(WithDropout(std::move(config)));
    config.attention = WithoutDefaults(std::move(config.attention), config.heads, config.width);
    if constexpr (requires { config.layers; }) {
      config.attention.patterns = ShortestPatterns(std::move(config.attention.patterns), config.layers);
    }
    if (config.positions == Resolve(PositionKind::kAuto, config.attention)) config.positions = PositionKind::kAuto;
    for (std::optional<bool>* const bias : {&config.attention.projection_bias, &config.attention.output_bias}) {
      *bias = bias->value_or(config.bias);
    }
    config.initializer.reset();
    config.zero_output = false;
    return config;
  };
  Config wanted = plain(config), got = plain(*read);
  const std::string lost = Difference(ModelRows(&wanted), ModelRows(&got), training);
  return CheckExpressible(model_type, {{!lost.empty(), lost.c_str()}});
}

// Reads the keys of TokenNames, such as decoder_start_token and add_source_eos, or returns null if there are none.
absl::StatusOr<std::optional<TokenNames>> ReadTokenNames(const Json& json);
// Adds these keys to `json`.
void WriteTokenNames(const std::optional<TokenNames>& names, Json* json);

// OfAnyModel<f>::Call takes a PublishedModel and calls `f`, which takes a model of one family. The model must be of
// that family. Rows of ModelFamily and Format need functions of this type.
template <auto function>
struct OfAnyModel;
template <class Result, class Model, class... Args, Result (*function)(const Model&, Args...)>
struct OfAnyModel<function> {
  static Result Call(const PublishedModel& model, Args... args) { return function(std::get<Model>(model), args...); }
};
template <class Result, class Model, class... Args, Result (*function)(Model*, Args...)>
struct OfAnyModel<function> {
  static Result Call(PublishedModel* model, Args... args) { return function(&std::get<Model>(*model), args...); }
};

// The names of one layer in Hugging Face's files and in Weft's model. A # stands for the number of a block. If a layer
// of Hugging Face has the rows of several layers here, `own` has their names, separated by commas.
struct LayerName {
  absl::string_view published, own;
};
// Returns a rule for each tensor that a layer of these lists may have: its weight, its bias and those of an adapter.
std::vector<Weights::Rule> LayerRules(std::initializer_list<absl::Span<const LayerName>> lists);

// Returns rules that transpose the weights that GPT-2's classes in Hugging Face store as [in, out]. The rules convert
// from Hugging Face's layout to Weft's, and back.
std::vector<Weights::Rule> Gpt2Transposes();
// Returns rules that give a GPT-2 the names of Hugging Face's class with a head.
std::vector<Weights::Rule> Gpt2Prefixes();

// Returns the bytes that the keys and values of one position take in a cache. `head`: the attention, with its widths.
int64_t CacheBytes(int64_t layers, const AttentionVariant& head);

// Returns the number of rows of the token table, for ModelFamily::vocabulary.
template <class Published>
int64_t VocabularyOf(const Published& model) {
  return model.config.vocabulary;
}

// Adds a bias of zeros for each bias among `wanted` that the weights lack.
absl::Status AddZeroBiases(absl::Span<const ParameterSpec> wanted, Weights* weights);
// Adds the table `name` of `rows` positions: the sinusoids of `config`, from its first position on.
absl::Status AddSinusoids(const std::string& name, int64_t rows, const TransformerConfig& config, Weights* weights);
// Reports whether the matrix `table` has the values value(row, column). The tolerance is for tables computed in f32.
bool HasValues(const Tensor& table, absl::FunctionRef<double(int64_t, int64_t)> value);

// Returns rules that drop tensors of a GPT that PyTorch saves but that are no parameters: causal masks and rotary
// frequencies.
std::vector<Weights::Rule> GptTensorsToDrop();
// Returns the model with the rows of queries and keys reordered for `layout`. Without rotary positions, the model stays
// unchanged.
absl::StatusOr<PublishedGpt> WithRotary(const PublishedGpt& gpt, RotaryLayout layout);
// Returns the model with all biases. A bias that the model lacked is filled with zeros.
absl::StatusOr<PublishedGpt> WithBiases(const PublishedGpt& gpt);

// Records an input of one sequence of tokens, i32 [1, length].
Var TokensInput(Tape* tape, const char* name, int64_t length, int64_t vocabulary);

}  // namespace weft

#endif  // WEFT_FORMATS_PUBLISHED_H_
