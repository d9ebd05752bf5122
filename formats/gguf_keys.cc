#include "weft/formats/gguf_keys.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "weft/base/json.h"
#include "weft/base/status.h"
#include "weft/core/block_formats.h"
#include "weft/core/gguf.h"
#include "weft/formats/config_keys.h"

namespace weft {
namespace {

constexpr char kArchitectureKey[] = "general.architecture", kTokenTable[] = "token_embd.weight",
               kHead[] = "output.weight", kSegments[] = "token_types.weight", kPoolingKey[] = "pooling_type";

constexpr GgufName kGpt2Keys[] = {
    {"context_length", "n_positions"},  {"embedding_length", "n_embd"},
    {"block_count", "n_layer"},         {"feed_forward_length", "n_inner"},
    {"attention.head_count", "n_head"}, {"attention.layer_norm_epsilon", "layer_norm_epsilon"}};
constexpr LayerName kGpt2Layers[] = {{"token_embd", "wte"},
                                     {"position_embd", "wpe"},
                                     {"blk.#.attn_norm", "h.#.ln_1"},
                                     {"blk.#.attn_qkv", "h.#.attn.c_attn"},
                                     {"blk.#.attn_output", "h.#.attn.c_proj"},
                                     {"blk.#.ffn_norm", "h.#.ln_2"},
                                     {"blk.#.ffn_up", "h.#.mlp.c_fc"},
                                     {"blk.#.ffn_down", "h.#.mlp.c_proj"},
                                     {"output_norm", "ln_f"},
                                     {"output", "lm_head"}};

constexpr GgufName kLlamaKeys[] = {{"context_length", "max_position_embeddings"},
                                   {"embedding_length", "hidden_size"},
                                   {"block_count", "num_hidden_layers"},
                                   {"feed_forward_length", "intermediate_size"},
                                   {"attention.head_count", "num_attention_heads"},
                                   {"attention.head_count_kv", "num_key_value_heads"},
                                   {"attention.layer_norm_rms_epsilon", "rms_norm_eps"},
                                   {"rope.freq_base", "rope_theta"},
                                   {"attention.key_length", "head_dim"}};
constexpr absl::Span<const GgufName> kQwen2Keys(kLlamaKeys, std::size(kLlamaKeys) - 1);  // without head_dim
constexpr LayerName kLlamaLayers[] = {{"token_embd", "model.embed_tokens"},
                                      {"blk.#.attn_norm", "model.layers.#.input_layernorm"},
                                      {"blk.#.attn_q", "model.layers.#.self_attn.q_proj"},
                                      {"blk.#.attn_k", "model.layers.#.self_attn.k_proj"},
                                      {"blk.#.attn_v", "model.layers.#.self_attn.v_proj"},
                                      {"blk.#.attn_q_norm", "model.layers.#.self_attn.q_norm"},
                                      {"blk.#.attn_k_norm", "model.layers.#.self_attn.k_norm"},
                                      {"blk.#.attn_output", "model.layers.#.self_attn.o_proj"},
                                      {"blk.#.ffn_norm", "model.layers.#.post_attention_layernorm"},
                                      {"blk.#.ffn_gate", "model.layers.#.mlp.gate_proj"},
                                      {"blk.#.ffn_up", "model.layers.#.mlp.up_proj"},
                                      {"blk.#.ffn_down", "model.layers.#.mlp.down_proj"},
                                      {"output_norm", "model.norm"},
                                      {"output", "lm_head"}};

constexpr GgufName kBertKeys[] = {{"context_length", "max_position_embeddings"},
                                  {"embedding_length", "hidden_size"},
                                  {"block_count", "num_hidden_layers"},
                                  {"feed_forward_length", "intermediate_size"},
                                  {"attention.head_count", "num_attention_heads"},
                                  {"attention.layer_norm_epsilon", "layer_norm_eps"}};
constexpr LayerName kBertLayers[] = {{"token_embd", "embeddings.word_embeddings"},
                                     {"token_types", "embeddings.token_type_embeddings"},
                                     {"position_embd", "embeddings.position_embeddings"},
                                     {"token_embd_norm", "embeddings.LayerNorm"},
                                     {"blk.#.attn_q", "encoder.layer.#.attention.self.query"},
                                     {"blk.#.attn_k", "encoder.layer.#.attention.self.key"},
                                     {"blk.#.attn_v", "encoder.layer.#.attention.self.value"},
                                     {"blk.#.attn_output", "encoder.layer.#.attention.output.dense"},
                                     {"blk.#.attn_output_norm", "encoder.layer.#.attention.output.LayerNorm"},
                                     {"blk.#.ffn_up", "encoder.layer.#.intermediate.dense"},
                                     {"blk.#.ffn_down", "encoder.layer.#.output.dense"},
                                     {"blk.#.layer_output_norm", "encoder.layer.#.output.LayerNorm"}};

constexpr GgufName kSilu = {"hidden_act", "silu"};
constexpr GgufArchitecture kArchitectures[] = {
    {.name = "gpt2", .keys = kGpt2Keys, .layers = kGpt2Layers, .activation = {"activation_function", "gelu_new"}},
    {.name = "llama", .keys = kLlamaKeys, .layers = kLlamaLayers, .activation = kSilu, .in_pairs = true},
    {.name = "qwen2", .keys = kQwen2Keys, .layers = kLlamaLayers, .activation = kSilu},
    {.name = "qwen3", .keys = kLlamaKeys, .layers = kLlamaLayers, .activation = kSilu},
    {.name = "bert", .keys = kBertKeys, .layers = kBertLayers, .activation = {"hidden_act", "gelu"}, .encoder = true},
};

// The values of the key pooling_type, and those of the key pooling_mode in a Pooling module's config.json.
constexpr std::pair<int, const char*> kPoolings[] = {{1, "mean"}, {2, "cls"}};

// The keys that all have the width of a head in the models that are supported.
constexpr const char* kHeadWidths[] = {"attention.key_length", "attention.value_length", "rope.dimension_count"};

// The tokens that generation needs.
constexpr GgufName kTokens[] = {{"tokenizer.ggml.bos_token_id", "bos_token_id"},
                                {"tokenizer.ggml.padding_token_id", "pad_token_id"}};

// Returns the keys of `metadata` that begin with the name of the architecture, without that.
Json OwnKeys(const Json& metadata, const std::string& name) {
  Json own = Json::object();
  for (const auto& [key, value] : metadata.items()) {
    if (absl::StartsWith(key, name + ".")) own[key.substr(name.size() + 1)] = value;
  }
  return own;
}

// Returns the value of rope_scaling in config.json for a model whose frequencies are divided by `factors`. A file does
// not say how they were computed. They must be those of Llama 3, for a context of 8192 positions in its training.
absl::StatusOr<Json> ScalingOf(const Tensor& factors, double base) {
  RotaryScaling llama3 = {.kind = RotaryScalingKind::kLlama3, .factor = 1, .context = 8192, .slow = 1, .fast = 4};
  if (factors.type.dtype != kF32 || factors.type.shape.rank() != 1) {
    return InvalidArgument(kGgufFactors, " is ", ToString(factors.type), ", wanted one axis of f32");
  }
  const absl::Span<const float> got = factors.span<const float>();
  for (const float factor : got) llama3.factor = std::max<double>(llama3.factor, factor);
  const std::vector<float> wanted = RotaryFactors(2 * static_cast<int64_t>(got.size()), base, llama3);
  const auto near = [](float a, float b) { return std::abs(a - b) <= 1e-4f * b; };
  if (!absl::c_equal(got, wanted, near)) {
    return InvalidArgument(kGgufFactors, " has other factors than the scaling of Llama 3 by ", llama3.factor,
                           " with a training context of ", llama3.context, ", which alone is supported");
  }
  return Json{{"rope_type", "llama3"},
              {"factor", llama3.factor},
              {"low_freq_factor", llama3.slow},
              {"high_freq_factor", llama3.fast},
              {"original_max_position_embeddings", llama3.context}};
}

// Reads how llama.cpp makes one vector of a text.
void ReadPooling(KeyReader& keys, Json* config) {
  const Json* const pooling = keys.Find(kPoolingKey);
  if (pooling == nullptr || *pooling == 0) return;
  for (const auto& [number, mode] : kPoolings) {
    if (*pooling != number) continue;
    (*config)[kGgufPooling] = {{"word_embedding_dimension", config->value("hidden_size", Json())},
                               {"pooling_mode", mode}};
  }
  if (!config->contains(kGgufPooling)) keys.Refuse(kPoolingKey, "0, 1 (mean) or 2 (the first token)");
}

}  // namespace

absl::StatusOr<const GgufArchitecture*> FindGgufArchitecture(const Json& name) {
  const GgufArchitecture* const found = FindRow(kArchitectures, name.is_string() ? name.get<std::string>() : "");
  if (found != nullptr) return found;
  return InvalidArgument(kArchitectureKey, " is ", JsonLine(name), ", which is not supported; wanted ",
                         absl::StrJoin(RowNames(kArchitectures), ", "));
}

std::vector<Weights::Rule> RulesOf(const GgufArchitecture& architecture) {
  std::vector<Weights::Rule> rules = LayerRules({architecture.layers});
  rules.push_back({kGgufFactors, {}});
  return rules;
}

std::vector<float> RotaryFactors(int64_t width, double base, const RotaryScaling& scaling) {
  std::vector<float> factors;
  for (int64_t i = 0; i < width / 2; ++i) {
    const double plain = RotaryFrequency(i, width, base, {}), scaled = RotaryFrequency(i, width, base, scaling);
    factors.push_back(static_cast<float>(plain / scaled));
  }
  return factors;
}

absl::StatusOr<Json> ConfigOfGguf(const Json& metadata, absl::Span<const NamedTensor> tensors) {
  WEFT_ASSIGN_OR_RETURN(const GgufArchitecture* const found,
                        FindGgufArchitecture(metadata.value(kArchitectureKey, Json())));
  KeyReader general(metadata);
  general.Only("general.type", "model");
  general.Only("split.count", 1);
  general.Only("general.sampling.mirostat", 0);
  general.Only("general.sampling.xtc_probability", 0);
  const Json own = OwnKeys(metadata, found->name);
  KeyReader keys(own);
  Json config = {{kGgufMark, found->name}, {"model_type", found->name}};
  config[found->activation.first] = found->activation.second;
  for (const auto& [key, published] : found->keys) {
    if (const Json* const value = keys.Find(key)) config[published] = *value;
  }
  if (const NamedTensor* const table = FindRow(tensors, kTokenTable)) {
    config["vocab_size"] = table->tensor.type.shape.dim(0);
  }
  config["tie_word_embeddings"] = found->encoder || FindRow(tensors, kHead) == nullptr;
  if (const NamedTensor* const table = FindRow(tensors, kSegments)) {
    config["type_vocab_size"] = table->tensor.type.shape.dim(0);
  }
  if (const NamedTensor* const factors = FindRow(tensors, kGgufFactors)) {
    double base = GptConfig().attention.rotary_base;
    keys.Field("rope.freq_base", base);
    WEFT_ASSIGN_OR_RETURN(config["rope_scaling"], ScalingOf(factors->tensor, base));
  }

  int64_t width = 0, heads = 1;
  keys.Field("embedding_length", width);
  keys.Field("attention.head_count", heads);
  int64_t head_width = heads > 0 ? width / heads : 0;
  keys.Field("attention.key_length", head_width);
  for (const char* const key : kHeadWidths) keys.Only(key, head_width);
  keys.Only("expert_count", 0);
  keys.Only("attention.causal", !found->encoder);
  if (found->encoder) ReadPooling(keys, &config);
  keys.Only("rope.scaling.type", "none");
  keys.Harmless({"vocab_size", "tensor_data_layout"});
  WEFT_RETURN_IF_ERROR(general.Refused());
  WEFT_RETURN_IF_ERROR(Annotate(keys.Finish(), found->name));
  for (const auto names :
       {absl::MakeConstSpan(kTokens), absl::MakeConstSpan(kGgufSampling), absl::MakeConstSpan(kGgufEndTokens)}) {
    for (const auto& [key, published] : names) {
      if (!metadata.contains(key)) continue;
      const Json& value = metadata[key];
      if (value.is_null() || value.is_string()) {
        return InvalidArgument(key, " is a text, or has more than ", kGgufShortList, " values, which is not supported");
      }
      if (names.data() == kGgufEndTokens) {
        config[published].push_back(value);
      } else {
        config[published] = value;
      }
    }
  }
  if (metadata.contains(kGgufTemperature)) config["do_sample"] = metadata[kGgufTemperature] > 0;
  return config;
}

Json GgufOfConfig(const GgufArchitecture& architecture, const Json& config, DType dtype) {
  Json metadata = {{kArchitectureKey, architecture.name}, {"general.type", "model"}};
  const auto set = [&](absl::string_view key, const Json& value) {
    if (value.is_null()) return;
    metadata[absl::StrCat(architecture.name, ".", key)] =
        value.is_number_integer() ? Json(value.get<uint64_t>()) : value;  // sizes are unsigned
  };
  for (const auto& [key, published] : architecture.keys) set(key, config.value(published, Json()));
  if (architecture.encoder) {
    set("attention.causal", false);
    for (const auto& [number, mode] : kPoolings) {
      if (config.value(kGgufPooling, Json::object()).value("pooling_mode", "") == mode) set(kPoolingKey, number);
    }
    metadata["tokenizer.ggml.token_type_count"] = config["type_vocab_size"].get<uint32_t>();
  } else if (config.contains("num_attention_heads")) {
    const int64_t width = config["hidden_size"].get<int64_t>() / config["num_attention_heads"].get<int64_t>();
    for (const char* const key : kHeadWidths) set(key, config.value("head_dim", Json(width)));
    set("vocab_size", config["vocab_size"]);
  }
  if (const int type = RowOf(dtype).file_type; type >= 0) metadata["general.file_type"] = static_cast<uint32_t>(type);
  if (IsBlockFormat(dtype)) metadata["general.quantization_version"] = uint32_t{2};
  return metadata;
}

}  // namespace weft
