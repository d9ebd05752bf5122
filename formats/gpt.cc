// This file defines PublishedGpt::kFamily. The functions read and write GPT-2, Llama and Mistral in Hugging Face's
// layout, and read minGPT's gpt-nano. FromRun describes the GPT of a training run.
#include <cstring>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "weft/base/status.h"
#include "weft/formats/config_json.h"
#include "weft/formats/config_keys.h"
#include "weft/formats/published.h"
#include "weft/text/tokenizers/load_tokenizer.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

template <class Keys, class Config>
void ListGpt2(Keys& keys, Config& config) {
  keys.Field("vocab_size", config.vocabulary);
  keys.Field("n_positions", config.context);
  keys.Field("n_embd", config.width);
  keys.Field("n_layer", config.layers);
  keys.Field("n_head", config.heads);
  keys.SizeOrNull("n_inner", config.feed_forward);
  keys.Choice("activation_function", kActivations, config.activation);
  keys.Field("resid_pdrop", config.dropout);
  keys.Field("embd_pdrop", config.embedding_dropout, config.dropout);
  keys.Field("attn_pdrop", config.attention_dropout, config.dropout);
  keys.Field("layer_norm_epsilon", config.norm.epsilon);
  keys.Field("tie_word_embeddings", config.tied_head);
  keys.Only("scale_attn_weights", true);
  keys.Only("scale_attn_by_inverse_layer_idx", false);
  keys.Only("position_embedding_type", "absolute");
  // n_ctx was the size of the causal mask. reorder_and_upcast_attn asks for attention in f32, which is always so here.
  // The summary keys belong to a head that no GPT here has.
  keys.Harmless({"n_ctx", "reorder_and_upcast_attn", "n_special", "predict_special_tokens", "summary_type",
                 "summary_use_proj", "summary_activation", "summary_proj_to_labels", "summary_first_dropout"});
}

template <class Keys, class Config>
void ListLlama(Keys& keys, Config& config) {
  keys.Field("vocab_size", config.vocabulary);
  keys.Field("max_position_embeddings", config.context);
  keys.Field("hidden_size", config.width);
  keys.Field("num_hidden_layers", config.layers);
  keys.Field("num_attention_heads", config.heads);
  keys.SizeOrNull("num_key_value_heads", config.attention.key_value_heads);
  keys.Field("intermediate_size", config.feed_forward);
  keys.Choice("hidden_act", kActivations, config.activation);
  keys.Field("attention_dropout", config.attention_dropout, config.dropout);
  keys.Field("rms_norm_eps", config.norm.epsilon);
  keys.Field("tie_word_embeddings", config.tied_head);
  keys.Field("rope_theta", config.attention.rotary_base);
  keys.Only("position_embedding_type", "absolute");
  keys.Harmless({"pretraining_tp"});  // computes the same products in parts
}

// Reads rope_theta. Refuses every kind of rotary positions except the default one, which has no scaling.
void ReadRotary(KeyReader& keys, GptConfig& config) {
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const Json* const json = keys.Find(key);
    if (json == nullptr) continue;
    bool plain = json->is_object();
    for (const auto& [name, value] : json->items()) {
      if (name == "rope_theta") {
        plain = plain && value.is_number();
        if (plain) config.attention.rotary_base = value.template get<double>();
      } else if (name == "partial_rotary_factor") {
        plain = plain && value == 1;
      } else {
        plain = plain && (name == "rope_type" || name == "type") && value == "default";
      }
    }
    if (!plain) keys.Refuse(key, "null, or rope_type \"default\" with a rope_theta");
  }
}

void ReadLlama(const std::string& type, KeyReader& keys, GptConfig& config) {
  const bool mistral = type == "mistral";
  config = {.vocabulary = 32000,
            .context = mistral ? 131072 : 2048,
            .layers = 32,
            .heads = 32,
            .width = 4096,
            .feed_forward = mistral ? 14336 : 11008,
            .activation = Activation::kSilu,
            .tied_head = false,
            .bias = false,
            .norm = {.kind = NormKind::kRmsNorm, .epsilon = 1e-6},
            .gated = true,
            .attention = {.key_value_heads = mistral ? 8 : 0, .rotary = RotaryLayout::kHalves},
            .names = GptConfig::Names::kLlama};
  ListLlama(keys, config);
  ReadRotary(keys, config);
  if (mistral) {
    int64_t window = keys.IsNull("sliding_window") ? 0 : 4096;
    keys.Field("sliding_window", window);
    if (window != 0) config.attention.patterns = {{.window = window}};
  } else {
    bool feed_forward = false;
    keys.Field("attention_bias", config.bias);
    keys.Field("mlp_bias", feed_forward);
    if (feed_forward != config.bias) keys.Refuse("attention_bias", "the same as mlp_bias");
  }
  int64_t head_width = 0;
  keys.SizeOrNull("head_dim", head_width);
  if (head_width != 0 && head_width * config.heads != config.width) {
    keys.Refuse("head_dim", "hidden_size / num_attention_heads");
  }
}

// Reports whether all layers have one window, and no other pattern.
bool HasOneWindow(const AttentionVariant& attention) {
  return attention.patterns.size() == 1 && attention.patterns[0].window > 0 && attention.patterns[0].stride == 0 &&
         attention.patterns[0].dilation == 1;
}

// Returns the name of the token table's layer.
absl::string_view TokenTable(const GptConfig& config) {
  return config.names == GptConfig::Names::kLlama ? "model.embed_tokens" : "wte";
}

constexpr absl::string_view kModelTypes[] = {"gpt2", "gpt-nano", "llama", "mistral"};

// Returns a run's model without weights. If config.json lacks the size of the vocabulary, the tokenizer gives it.
absl::StatusOr<PublishedModel> FromRun(const std::string& folder, const Json& run) {
  GptConfig config = CharacterGpt();
  WEFT_RETURN_IF_ERROR(ReadRunModel(run, &config));
  if (config.vocabulary == 0) {
    WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer, LoadTokenizer(folder));
    config.vocabulary = tokenizer->vocabulary_size();
  }
  WEFT_RETURN_IF_ERROR(Validate(config));
  return PublishedModel(PublishedGpt{config, {}});
}

absl::StatusOr<Json> ToRun(const PublishedGpt& model) {
  WEFT_ASSIGN_OR_RETURN(Json config, WriteModelConfig(model.config));
  return Json{{"model", std::move(config)}};
}

}  // namespace

template <>
absl::StatusOr<GptConfig> ConfigFromJson(const Json& json) {
  KeyReader keys(json);
  std::string type = "gpt2";
  keys.Field("model_type", type);
  GptConfig config;
  if (type == "llama" || type == "mistral") {
    ReadLlama(type, keys, config);
  } else if (type == "gpt2" || type == "gpt-nano") {
    config.dropout = 0.1;
    config.embedding_dropout = config.attention_dropout = 0.1;
    if (type == "gpt-nano") {  // minGPT
      config.tied_head = false;
      keys.Field("block_size", config.context);
    }
    ListGpt2(keys, config);
  } else {
    keys.Refuse("model_type", "gpt2, gpt-nano, llama or mistral");
  }
  ReadUsualKeys(keys, {"GPT2LMHeadModel", "GPT2Model", "LlamaForCausalLM", "MistralForCausalLM"});
  keys.Harmless({"is_decoder"});
  return Finished(keys, config);
}

absl::StatusOr<Json> ToJson(const GptConfig& config) {
  WEFT_RETURN_IF_ERROR(Validate(config));
  const bool llama = config.names == GptConfig::Names::kLlama, mistral = llama && HasOneWindow(config.attention);
  const std::string type = mistral ? "mistral" : llama ? "llama" : "gpt2";
  const bool halves = config.attention.rotary == RotaryLayout::kHalves;
  WEFT_RETURN_IF_ERROR(CheckExpressible(type, {{llama && !halves, "positions are not rotary in halves"}}));
  KeyWriter keys;
  keys.Field("model_type", type);
  keys.Field("architectures", std::vector<std::string>{mistral ? "MistralForCausalLM"
                                                       : llama ? "LlamaForCausalLM"
                                                               : "GPT2LMHeadModel"});
  if (llama) {
    GptConfig full = WithFeedForward(config);
    if (full.attention.key_value_heads == 0) full.attention.key_value_heads = full.heads;
    ListLlama(keys, full);
  } else {
    ListGpt2(keys, config);
  }
  if (mistral) keys.Field("sliding_window", config.attention.patterns[0].window);
  for (const char* const key : {"attention_bias", "mlp_bias"}) {
    if (llama && !mistral) keys.Field(key, config.bias);
  }
  Json json = std::move(keys).Finish();
  WEFT_RETURN_IF_ERROR(CheckReadBack(type, config, ConfigFromJson<GptConfig>(json)));
  return json;
}

std::vector<Weights::Rule> GptTensorsToDrop() {
  return {{"h.#.attn.bias", {}}, {"h.#.attn.masked_bias", {}}, {"#.rotary_emb.inv_freq", {}}};
}

absl::StatusOr<PublishedGpt> WithRotary(const PublishedGpt& gpt, RotaryLayout layout) {
  if (gpt.config.attention.rotary == layout || !gpt.config.attention.rotary) return gpt;
  PublishedGpt result = {.config = gpt.config};
  result.config.attention.rotary = layout;
  const int64_t width = gpt.config.width / gpt.config.heads, half = width / 2;
  for (const auto& [name, from] : gpt.weights.tensors()) {
    WEFT_ASSIGN_OR_RETURN(const Tensor to, result.weights.Add(name, from.type));
    if (!absl::StrContains(name, ".self_attn.q_proj.") && !absl::StrContains(name, ".self_attn.k_proj.")) {
      std::memcpy(to.data, from.data, from.type.bytes());
      continue;
    }
    // A head has `width` rows, and half = width / 2. In layout kPairs, rotation k turns rows 2k and 2k + 1 of a head;
    // in layout kHalves, it turns rows k and k + half.
    const int64_t rows = from.type.shape.dim(0), bytes = static_cast<int64_t>(from.type.bytes()) / rows;
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t head = row / width * width, i = row % width, pairs = head + i % half * 2 + i / half;
      const bool to_halves = layout == RotaryLayout::kHalves;
      std::memcpy(to.data + (to_halves ? row : pairs) * bytes, from.data + (to_halves ? pairs : row) * bytes,
                  static_cast<size_t>(bytes));
    }
  }
  return result;
}

absl::StatusOr<PublishedGpt> WithBiases(const PublishedGpt& gpt) {
  PublishedGpt result = gpt;
  result.config.bias = true;
  WEFT_RETURN_IF_ERROR(AddZeroBiases(ParametersOf(result), &result.weights));
  return result;
}

namespace {

absl::StatusOr<PublishedModel> Read(const std::string& folder, const Json& json) {
  WEFT_ASSIGN_OR_RETURN(GptConfig config, Annotate(ConfigFromJson<GptConfig>(json), ConfigPath(folder)));
  std::vector<std::vector<Weights::Rule>> rules = {{{"transformer.#", {"#"}}}, GptTensorsToDrop()};
  if (const Json* const type = FindModelType(json); type == nullptr || *type == "gpt2") {
    rules.push_back(TransposeRules(PublishedGpt::kFamily));
  }
  WEFT_ASSIGN_OR_RETURN(Weights weights, ReadFolderWeights(folder, rules));
  // As in the package transformers, a head that differs from the token table stays, whatever the configuration says.
  config.tied_head =
      config.tied_head && weights.Tie(absl::StrCat(TokenTable(config), ".weight"), "lm_head.weight").ok();
  WEFT_RETURN_IF_ERROR(weights.Fit(ParametersOf(PublishedGpt{config})));
  return PublishedModel(PublishedGpt{config, std::move(weights)});
}

absl::Status Write(const PublishedGpt& gpt, const std::string& folder, const WriteModelOptions&) {
  if (gpt.config.names == GptConfig::Names::kLlama) {
    WEFT_ASSIGN_OR_RETURN(const PublishedGpt halves, WithRotary(gpt, RotaryLayout::kHalves));
    WEFT_ASSIGN_OR_RETURN(const Json json, ToJson(halves.config));
    return WriteModelFolder(folder, json, halves.weights);
  }
  WEFT_ASSIGN_OR_RETURN(PublishedGpt full, WithBiases(gpt));
  WEFT_ASSIGN_OR_RETURN(const Json json, ToJson(full.config));
  WEFT_RETURN_IF_ERROR(full.weights.Apply(TransposeRules(PublishedGpt::kFamily)));
  WEFT_RETURN_IF_ERROR(full.weights.Apply(PrefixRules(PublishedGpt::kFamily)));
  return WriteModelFolder(folder, json, full.weights);
}

void RecordModel(const PublishedGpt& model, int64_t tokens, bool, Tape* tape) {
  Gpt(model.config).Logits(TokensInput(tape, "tokens", tokens, model.config.vocabulary));
}

ModelSizes SizesOf(const PublishedGpt& model) {
  const GptConfig c = WithFeedForward(model.config);
  const AttentionVariant head = WithWidths(c.attention, c.ablation, c.heads, c.width);
  const int64_t keys = head.key_value_heads * head.key_width, values = head.key_value_heads * head.value_width;
  ModelSizes sizes = {.sizes = {{"C", "width", c.width},
                                {"F", "feed-forward width", c.feed_forward},
                                {"V", "vocabulary", c.vocabulary},
                                {"T", "context", c.context}},
                      .context = c.context,
                      .cache_bytes = CacheBytes(c.layers, head)};
  if (keys == values && keys != c.width) sizes.sizes.push_back({"K", "width of keys and values", keys});
  return sizes;
}

std::vector<std::string> TiedLayers(const PublishedGpt& model) {
  if (!model.config.tied_head) return {};
  return {std::string(TokenTable(model.config)), "lm_head"};
}

absl::Status Untie(PublishedGpt* model) {
  const Tensor table = *model->weights.Find(absl::StrCat(TokenTable(model->config), ".weight"));
  WEFT_ASSIGN_OR_RETURN(const Tensor head, model->weights.Add("lm_head.weight", table.type));
  std::memcpy(head.data, table.data, table.type.bytes());
  model->config.tied_head = false;
  return absl::OkStatus();
}

constexpr absl::string_view kUnprefixed[] = {"lm_head"};
constexpr absl::string_view kTransposed[] = {"h.#.attn.c_attn.weight", "h.#.attn.c_proj.weight", "h.#.mlp.c_fc.weight",
                                             "h.#.mlp.c_proj.weight"};

}  // namespace

const ModelFamily PublishedGpt::kFamily = {
    .name = "a GPT",
    .model_types = kModelTypes,
    .read = Read,
    .write = OfAnyModel<Write>::Call,
    .prefix = "transformer.",
    .unprefixed = kUnprefixed,
    .transposed = kTransposed,
    .from_run = FromRun,
    .to_run = OfAnyModel<ToRun>::Call,
    .record = OfAnyModel<RecordModel>::Call,
    .sizes = OfAnyModel<SizesOf>::Call,
    .vocabulary = OfAnyModel<VocabularyOf<PublishedGpt>>::Call,
    .continues_texts = true,
    .tied = OfAnyModel<TiedLayers>::Call,
    .untie = OfAnyModel<Untie>::Call,
};

}  // namespace weft
