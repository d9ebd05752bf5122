#include "weft/models/weights.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "weft/core/file.h"
#include "weft/core/json.h"
#include "weft/core/status.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

// The text that # stands for, if `name` fits the pattern.
std::optional<std::string> Match(absl::string_view pattern, absl::string_view name) {
  const size_t hash = pattern.find('#');
  if (hash == absl::string_view::npos) return pattern == name ? std::optional<std::string>("") : std::nullopt;
  const absl::string_view before = pattern.substr(0, hash), after = pattern.substr(hash + 1);
  if (name.size() < before.size() + after.size() || !absl::StartsWith(name, before) || !absl::EndsWith(name, after)) {
    return std::nullopt;
  }
  return std::string(name.substr(before.size(), name.size() - before.size() - after.size()));
}

// A configuration that others wrote: its values, by keys of which the first that is there counts.
class Config {
 public:
  static absl::StatusOr<Config> Read(const std::string& path) {
    WEFT_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
    absl::StatusOr<Json> json = ParseJsonObject(text);
    if (!json.ok()) return Annotate(json.status(), path);
    return Config(path, *std::move(json));
  }

  // Sets *value if a key is there, and says what is wrong if its value is of another kind.
  template <class T>
  void Get(std::initializer_list<const char*> keys, T* value) {
    for (const char* key : keys) {
      if (!json_.contains(key) || json_[key].is_null()) continue;
      const Json& json = json_[key];
      const bool fits = std::is_same_v<T, bool>          ? json.is_boolean()
                        : std::is_same_v<T, std::string> ? json.is_string()
                        : std::is_same_v<T, double>      ? json.is_number()
                                                         : json.is_number_integer();
      if (fits) {
        *value = json.get<T>();
      } else if (status_.ok()) {
        status_ = absl::InvalidArgumentError(absl::StrCat(path_, ": ", key, " is ", json.dump()));
      }
      return;
    }
  }
  void GetActivation(std::initializer_list<const char*> keys, Activation* activation) {
    static constexpr std::pair<const char*, Activation> kNames[] = {
        {"gelu", Activation::kGelu}, {"gelu_new", Activation::kGeluTanh}, {"gelu_pytorch_tanh", Activation::kGeluTanh},
        {"relu", Activation::kRelu}, {"silu", Activation::kSilu},         {"swish", Activation::kSilu}};
    std::string name;
    Get(keys, &name);
    if (name.empty()) return;
    for (const auto& [known, value] : kNames) {
      if (name == known) return void(*activation = value);
    }
    Refuse(*keys.begin(), "gelu, gelu_new, relu or silu");
  }
  void Refuse(const char* key, absl::string_view wanted) {
    if (!status_.ok()) return;
    status_ = absl::InvalidArgumentError(absl::StrCat(path_, ": ", key, " is ", json_.value(key, Json()).dump(),
                                                      ", which is not supported; wanted ", wanted));
  }
  const absl::Status& status() const { return status_; }

 private:
  Config(std::string path, Json json) : path_(std::move(path)), json_(std::move(json)) {}

  std::string path_;
  Json json_;
  absl::Status status_;
};

}  // namespace

absl::StatusOr<Weights> Weights::ReadSafetensors(const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::Open(path));
  Weights weights;
  weights.file_ = std::make_shared<const SafetensorsFile>(std::move(file));
  weights.tensors_.assign(weights.file_->tensors().begin(), weights.file_->tensors().end());
  return weights;
}

Tensor Weights::Add(std::string name, TensorType type) {
  const Tensor tensor = {type, arena_->Allocate(type.bytes())};
  WEFT_CHECK(tensor.data != nullptr);
  tensors_.push_back({std::move(name), tensor});
  return tensor;
}

absl::Status Weights::Apply(const std::vector<Rule>& rules) {
  for (NamedTensor& named : std::exchange(tensors_, {})) {
    std::optional<std::string> text;
    const auto rule = std::find_if(rules.begin(), rules.end(), [&](const Rule& r) {
      text = Match(r.from, named.name);
      return text.has_value();
    });
    if (rule == rules.end()) {
      tensors_.push_back(std::move(named));
      continue;
    }
    Tensor tensor = named.tensor;
    const Shape shape = tensor.type.shape;
    const int64_t parts = static_cast<int64_t>(rule->to.size());
    if ((rule->transpose && (shape.rank() != 2 || tensor.type.dtype != kF32)) ||
        (parts > 1 && (shape.rank() < 1 || shape.dim(0) % parts != 0))) {
      return absl::InvalidArgumentError(absl::StrCat("'", named.name, "' is ", ToString(tensor.type), ", wanted ",
                                                     rule->transpose ? "an f32 matrix" : "rows in ",
                                                     rule->transpose ? "" : absl::StrCat(parts, " equal parts")));
    }
    if (rule->transpose) {
      tensor = Add("", {kF32, {shape.dim(1), shape.dim(0)}});
      tensors_.pop_back();
      for (int64_t i = 0; i < shape.elements(); ++i) {
        tensor.as<float>()[i % shape.dim(1) * shape.dim(0) + i / shape.dim(1)] = named.tensor.as<float>()[i];
      }
    }
    if (parts > 1) tensor.type.shape.set_dim(0, shape.dim(0) / parts);
    for (const std::string& to : rule->to) {
      tensors_.push_back({absl::StrReplaceAll(to, {{"#", *text}}), tensor});
      tensor.data += tensor.type.bytes();
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<PublishedBert> ReadBert(const std::string& folder) {
  WEFT_ASSIGN_OR_RETURN(Config json, Config::Read(folder + "/config.json"));
  PublishedBert bert;
  BertConfig& config = bert.config;
  std::string type = "bert", positions = "absolute";
  json.Get({"model_type"}, &type);
  json.Get({"position_embedding_type"}, &positions);
  if (type != "bert") json.Refuse("model_type", "bert");
  if (positions != "absolute") json.Refuse("position_embedding_type", "absolute");
  json.Get({"vocab_size"}, &config.vocabulary);
  json.Get({"max_position_embeddings"}, &config.context);
  json.Get({"type_vocab_size"}, &config.segments);
  json.Get({"num_hidden_layers"}, &config.layers);
  json.Get({"num_attention_heads"}, &config.heads);
  json.Get({"hidden_size"}, &config.width);
  json.Get({"intermediate_size"}, &config.feed_forward);
  json.Get({"hidden_dropout_prob"}, &config.dropout);
  json.Get({"layer_norm_eps"}, &config.norm_epsilon);
  json.GetActivation({"hidden_act"}, &config.activation);
  WEFT_RETURN_IF_ERROR(json.status());
  WEFT_RETURN_IF_ERROR(Annotate(Validate(config), folder + "/config.json"));
  WEFT_ASSIGN_OR_RETURN(bert.weights, Weights::ReadSafetensors(folder + "/model.safetensors"));
  WEFT_RETURN_IF_ERROR(bert.weights.Apply({{"bert.#", {"#"}}}));
  WEFT_RETURN_IF_ERROR(bert.weights.Apply({{"embeddings.position_ids", {}},
                                           {"cls.predictions.decoder.#", {}},  // the token table and the bias again
                                           {"#.gamma", {"#.weight"}},
                                           {"#.beta", {"#.bias"}}}));
  return bert;
}

absl::StatusOr<PublishedGpt> ReadGpt(const std::string& folder) {
  WEFT_ASSIGN_OR_RETURN(Config json, Config::Read(folder + "/config.json"));
  PublishedGpt gpt;
  GptConfig& config = gpt.config;
  std::string type = "gpt2";
  json.Get({"model_type"}, &type);
  const bool llama = type == "llama" || type == "mistral";
  if (type != "gpt2" && type != "gpt-nano" && !llama) json.Refuse("model_type", "gpt2, gpt-nano, llama or mistral");
  if (llama) {
    config.norm = {.kind = NormKind::kRmsNorm, .epsilon = 1e-6};
    config.rotary = RotaryLayout::kHalves;
    config.gated = true;
    config.activation = Activation::kSilu;
    config.bias = config.tied_head = false;
    config.names = GptConfig::Names::kLlama;
  }
  config.tied_head = type == "gpt2";
  json.Get({"vocab_size"}, &config.vocabulary);
  json.Get({"n_positions", "n_ctx", "block_size", "max_position_embeddings"}, &config.context);
  json.Get({"n_layer", "num_hidden_layers"}, &config.layers);
  json.Get({"n_head", "num_attention_heads"}, &config.heads);
  json.Get({"num_key_value_heads"}, &config.key_value_heads);
  json.Get({"n_embd", "hidden_size"}, &config.width);
  json.Get({"n_inner", "intermediate_size"}, &config.feed_forward);
  json.Get({"sliding_window"}, &config.window);
  json.Get({"resid_pdrop"}, &config.dropout);
  json.Get({"layer_norm_epsilon", "rms_norm_eps"}, &config.norm.epsilon);
  json.Get({"rope_theta"}, &config.rotary_base);
  json.Get({"tie_word_embeddings"}, &config.tied_head);
  json.GetActivation({"activation_function", "hidden_act"}, &config.activation);
  WEFT_RETURN_IF_ERROR(json.status());
  WEFT_RETURN_IF_ERROR(Annotate(Validate(config), folder + "/config.json"));
  WEFT_ASSIGN_OR_RETURN(gpt.weights, Weights::ReadSafetensors(folder + "/model.safetensors"));
  if (llama) {
    WEFT_RETURN_IF_ERROR(gpt.weights.Apply({{"#.rotary_emb.inv_freq", {}}}));
    return gpt;
  }
  WEFT_RETURN_IF_ERROR(gpt.weights.Apply({{"transformer.#", {"#"}}}));
  std::vector<Weights::Rule> rules = {{"h.#.attn.bias", {}}, {"h.#.attn.masked_bias", {}}};  // the causal mask
  if (config.tied_head) rules.push_back({"lm_head.weight", {}});
  if (type == "gpt2") {  // its layers are stored as [in, out]
    for (const char* name :
         {"h.#.attn.c_attn.weight", "h.#.attn.c_proj.weight", "h.#.mlp.c_fc.weight", "h.#.mlp.c_proj.weight"}) {
      rules.push_back({name, {name}, /*transpose=*/true});
    }
  }
  WEFT_RETURN_IF_ERROR(gpt.weights.Apply(rules));
  return gpt;
}

absl::StatusOr<PublishedGpt> ReadLlama2c(const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  constexpr uint32_t kMagic = 0x616b3432, kVersionHeader = 256;  // which version 1 begins with; bytes of its header
  std::array<int32_t, 9> header = {};
  std::memcpy(header.data(), bytes.data(), std::min(bytes.size(), sizeof(header)));
  const bool versioned = static_cast<uint32_t>(header[0]) == kMagic;
  if (versioned && header[1] != 1) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": version ", header[1], " of llama2.c's files, wanted 1"));
  }
  const int32_t* const sizes = header.data() + (versioned ? 2 : 0);
  PublishedGpt gpt;
  GptConfig& config = gpt.config;
  config = {.vocabulary = std::abs(static_cast<int64_t>(sizes[5])),
            .context = sizes[6],
            .layers = sizes[2],
            .heads = sizes[3],
            .width = sizes[0],
            .feed_forward = sizes[1],
            .activation = Activation::kSilu,
            .tied_head = versioned ? bytes.size() > 36 && bytes[36] != 0 : sizes[5] > 0,
            .bias = false,
            .key_value_heads = sizes[4],
            .norm = {.kind = NormKind::kRmsNorm},
            .gated = true,
            .rotary = RotaryLayout::kPairs,
            .names = GptConfig::Names::kLlama};
  if (absl::Status valid = Validate(config); !valid.ok()) {
    return Annotate(valid, absl::StrCat(path, " is no checkpoint of llama2.c"));
  }
  const int64_t width = config.width, hidden = config.feed_forward,
                keys = width / config.heads * (sizes[4] > 0 ? sizes[4] : config.heads);
  const struct {
    const char* name;  // # is the layer
    Shape shape;
    int order[2];  // among the others, in the first form and in version 1
  } kArrays[] = {{"model.embed_tokens.weight", {config.vocabulary, width}, {0, 3}},
                 {"model.layers.#.input_layernorm.weight", {width}, {1, 0}},
                 {"model.layers.#.self_attn.q_proj.weight", {width, width}, {2, 4}},
                 {"model.layers.#.self_attn.k_proj.weight", {keys, width}, {3, 5}},
                 {"model.layers.#.self_attn.v_proj.weight", {keys, width}, {4, 6}},
                 {"model.layers.#.self_attn.o_proj.weight", {width, width}, {5, 7}},
                 {"model.layers.#.post_attention_layernorm.weight", {width}, {6, 1}},
                 {"model.layers.#.mlp.gate_proj.weight", {hidden, width}, {7, 8}},
                 {"model.layers.#.mlp.down_proj.weight", {width, hidden}, {8, 9}},
                 {"model.layers.#.mlp.up_proj.weight", {hidden, width}, {9, 10}},
                 {"model.norm.weight", {width}, {10, 2}}};
  size_t at = versioned ? kVersionHeader : 28;
  const double tables = versioned ? 0 : static_cast<double>(config.context) * static_cast<double>(width / config.heads);
  double wanted = static_cast<double>(at) + 4 * tables;  // no header makes it overflow
  for (const auto& array : kArrays) {
    double numbers = absl::StrContains(array.name, '#') ? static_cast<double>(config.layers) : 1;
    if (!config.tied_head && &array == kArrays) numbers = 2;  // the head is as large as the token table
    for (int64_t size : array.shape.dims()) numbers *= static_cast<double>(size);
    wanted += 4 * numbers;
  }
  if (wanted != static_cast<double>(bytes.size())) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is no checkpoint of llama2.c: it has ", bytes.size(),
                                                   " bytes, but its header asks for ", wanted));
  }
  const auto read = [&](const std::string& name, const Shape& shape) {
    const TensorType type = {kF32, shape};
    std::memcpy(gpt.weights.Add(name, type).data, bytes.data() + at, type.bytes());
    at += type.bytes();
  };
  for (int place = 0; place < static_cast<int>(std::size(kArrays)); ++place) {
    const auto& array = *std::find_if(std::begin(kArrays), std::end(kArrays),
                                      [&](const auto& a) { return a.order[versioned] == place; });
    const bool layered = absl::StrContains(array.name, '#');
    for (int64_t i = 0; i < (layered ? config.layers : 1); ++i) {
      read(absl::StrReplaceAll(array.name, {{"#", absl::StrCat(i)}}), array.shape);
    }
  }
  at += 4 * static_cast<size_t>(tables);  // of the positions: cosines and sines
  if (!config.tied_head) read("lm_head.weight", {config.vocabulary, width});
  return gpt;
}

absl::StatusOr<PublishedTransformer> ReadCTranslate2(const std::string& folder) {
  WEFT_ASSIGN_OR_RETURN(Config json, Config::Read(folder + "/config.json"));
  PublishedTransformer model;
  TransformerConfig& config = model.config;
  json.Get({"source_vocab"}, &config.source_vocabulary);
  json.Get({"target_vocab"}, &config.target_vocabulary);
  json.Get({"encoder_layers"}, &config.encoder_layers);
  json.Get({"decoder_layers"}, &config.decoder_layers);
  json.Get({"num_heads"}, &config.heads);
  json.Get({"d_model"}, &config.width);
  json.Get({"ffn_dim"}, &config.feed_forward);
  json.Get({"layer_norm_eps"}, &config.norm.epsilon);
  json.GetActivation({"activation"}, &config.activation);
  WEFT_RETURN_IF_ERROR(json.status());
  // What OpenNMT trains, and CTranslate2 runs.
  config.pre_norm = config.head_bias = true;
  config.tied_head = false;
  config.positions = TransformerConfig::Positions::kSinusoidalHalves;
  config.first_position = 1;
  WEFT_RETURN_IF_ERROR(Annotate(Validate(config), folder + "/config.json"));
  WEFT_ASSIGN_OR_RETURN(model.weights, Weights::ReadSafetensors(folder + "/model.safetensors"));
  // Step by step, since a rule stands for one part of a name.
  const std::vector<Weights::Rule> steps[] = {
      {{"#/gamma", {"#/weight"}}, {"#/beta", {"#/bias"}}},
      {{"encoder/layer_norm/#", {"encoder.layer_norm.#"}},
       {"decoder/layer_norm/#", {"decoder.layer_norm.#"}},
       {"encoder/layer_#", {"encoder.layers.#"}},
       {"decoder/layer_#", {"decoder.layers.#"}},
       {"#/embeddings/weight", {"#.embed_tokens.weight"}},
       {"decoder/projection/#", {"lm_head.#"}}},
  };
  for (const std::vector<Weights::Rule>& rules : steps) WEFT_RETURN_IF_ERROR(model.weights.Apply(rules));
  for (const char* array : {"weight", "bias"}) {
    const auto rule = [&](absl::string_view from, std::initializer_list<absl::string_view> to) {
      std::vector<std::string> names;
      for (absl::string_view name : to) names.push_back(absl::StrCat("#.", name, ".", array));
      return Weights::Rule{absl::StrCat("#/", from, "/", array), std::move(names)};
    };
    WEFT_RETURN_IF_ERROR(model.weights.Apply(
        {rule("self_attention/layer_norm", {"self_attn_layer_norm"}),
         rule("self_attention/linear_0", {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}),
         rule("self_attention/linear_1", {"self_attn.out_proj"}),
         rule("attention/layer_norm", {"encoder_attn_layer_norm"}), rule("attention/linear_0", {"encoder_attn.q_proj"}),
         rule("attention/linear_1", {"encoder_attn.k_proj", "encoder_attn.v_proj"}),
         rule("attention/linear_2", {"encoder_attn.out_proj"}), rule("ffn/layer_norm", {"final_layer_norm"}),
         rule("ffn/linear_0", {"fc1"}), rule("ffn/linear_1", {"fc2"})}));
  }
  return model;
}

}  // namespace weft
