// This file defines PublishedGpt::kFamily. The functions read and write the decoder families (decoders/decoder.h) in
// Hugging Face's layout. FromRun describes the GPT of a training run.
#include <cstring>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "weft/base/status.h"
#include "weft/formats/config_json.h"
#include "weft/formats/config_keys.h"
#include "weft/formats/decoders/decoder.h"
#include "weft/formats/published.h"
#include "weft/text/tokenizers/load_tokenizer.h"

namespace weft {
namespace {

// Returns the name of the token table's layer.
absl::string_view TokenTable(const GptConfig& config) {
  return config.names == GptConfig::Names::kLlama ? "model.embed_tokens" : "wte";
}

absl::Span<const absl::string_view> ModelTypes() {
  static const auto* const kTypes = [] {
    auto* const types = new std::vector<absl::string_view>;
    for (const DecoderFamily* const each : DecoderFamilies()) types->push_back(each->model_type);
    return types;
  }();
  return *kTypes;
}

// Returns a run's model without weights. If config.json lacks the size of the vocabulary, the tokenizer gives it.
absl::StatusOr<PublishedModel> FromRun(const std::string& folder, const Json& run) {
  GptConfig config = CharacterGpt();
  WEFT_RETURN_IF_ERROR(ReadWholeRunModel(run, &config));
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

// Writes `config` as a model of `family`.
absl::StatusOr<Json> WriteAs(const DecoderFamily& family, const GptConfig& config) {
  KeyWriter keys(family.model_type, family.classes[0]);
  GptConfig full = config;
  if (config.names == GptConfig::Names::kLlama) {
    full = WithFeedForward(config);
    const AttentionVariant head = WithWidths(full.attention, full.ablation, full.heads, full.width);
    full.attention.key_value_heads = head.key_value_heads;
    full.attention.key_width = head.key_width;
  }
  family.list(keys, full);
  Json json = std::move(keys).Finish();
  WEFT_RETURN_IF_ERROR(CheckReadBack(family.model_type, config, ConfigFromJson<GptConfig>(json)));
  return json;
}

// Writes `config` as a model of the family `preferred` or else of the first family that can express it.
absl::StatusOr<Json> WriteAsAny(const GptConfig& config, absl::string_view preferred) {
  WEFT_RETURN_IF_ERROR(Validate(config));
  if (preferred.empty()) preferred = config.names == GptConfig::Names::kLlama ? "llama" : "gpt2";
  const DecoderFamily* const first = FindDecoder(preferred);
  absl::StatusOr<Json> json = WriteAs(*first, config);
  for (const DecoderFamily* const each : DecoderFamilies()) {
    if (json.ok()) break;
    if (each == first || each->only_read) continue;
    if (absl::StatusOr<Json> other = WriteAs(*each, config); other.ok()) return other;
  }
  return json;
}

// Returns the rules for the layers of a model_type whose names are not Gpt's.
std::vector<Weights::Rule> LayersOf(absl::string_view model_type) {
  const DecoderFamily* const family = FindDecoder(model_type);
  return family == nullptr ? std::vector<Weights::Rule>() : LayerRules({family->layers});
}

// Returns the other changes from the tensors of `family`'s files to those of Gpt, except those of any family.
std::vector<Weights::Rule> OtherRules(const DecoderFamily& family, const GptConfig& config) {
  std::vector<Weights::Rule> rules;
  if (family.rules != nullptr) rules = family.rules(config);
  const int64_t groups = config.attention.key_value_heads != 0 ? config.attention.key_value_heads : config.heads;
  for (const std::string array : {".weight", ".bias"}) {
    if (family.fused_layer.empty()) break;
    const std::string own = "model.layers.#.self_attn.";
    rules.push_back({.from = absl::StrCat(family.fused_layer, array),
                     .to = {own + "q_proj" + array, own + "k_proj" + array, own + "v_proj" + array},
                     .parts = {config.heads / groups, 1, 1},
                     .groups = groups});
  }
  return rules;
}

// Returns the changes from the tensors of `family`'s files to those of Gpt, in the order in which they are made.
std::vector<std::vector<Weights::Rule>> RulesOf(const DecoderFamily& family, const GptConfig& config) {
  std::vector<Weights::Rule> prefix;
  if (config.names == GptConfig::Names::kGpt2) prefix.push_back({"transformer.#", {"#"}});
  return {prefix, GptTensorsToDrop(), LayersOf(family.model_type), OtherRules(family, config)};
}

absl::StatusOr<PublishedModel> Read(const std::string& folder, const Json& json) {
  WEFT_ASSIGN_OR_RETURN(GptConfig config, Annotate(ConfigFromJson<GptConfig>(json), ConfigPath(folder)));
  const Json* const type = FindModelType(json);
  const DecoderFamily& family = *FindDecoder(type == nullptr ? "gpt2" : type->get_ref<const std::string&>());
  WEFT_ASSIGN_OR_RETURN(Weights weights, ReadFolderWeights(folder, RulesOf(family, config)));
  // As in the package transformers, a head that differs from the token table stays, whatever the configuration says.
  config.tied_head =
      config.tied_head && weights.Tie(absl::StrCat(TokenTable(config), ".weight"), "lm_head.weight").ok();
  WEFT_RETURN_IF_ERROR(weights.Fit(ParametersOf(PublishedGpt{config})));
  const absl::string_view written = family.only_read ? "" : family.model_type;
  return PublishedModel(PublishedGpt{config, std::move(weights), std::string(written)});
}

// Returns a model with GPT-2's names and rotary positions, as `weft train gpt` makes it, with Llama's names.
absl::StatusOr<PublishedGpt> WithLlamaNames(const PublishedGpt& gpt) {
  PublishedGpt result = gpt;
  result.config.names = GptConfig::Names::kLlama;
  const AttentionVariant head =
      WithWidths(gpt.config.attention, gpt.config.ablation, gpt.config.heads, gpt.config.width);
  if (head.query_width != head.key_width || head.key_width != head.value_width) return result;  // no family has it
  const LayerName ends_of_layers[] = {
      {"#.attn.c_proj", "#.self_attn.o_proj"},
      {"#.attn.q_norm", "#.self_attn.q_norm"},
      {"#.attn.k_norm", "#.self_attn.k_norm"},
      {"#.c_fc", "#.up_proj"},
      {"#.c_gate", "#.gate_proj"},
      {"#.c_proj", "#.down_proj"},
      {"#.ln_1", "#.input_layernorm"},
      {"#.ln_2", gpt.config.result_norm ? "#.pre_feedforward_layernorm" : "#.post_attention_layernorm"},
      {"#.ln_1_result", "#.post_attention_layernorm"},
      {"#.ln_2_result", "#.post_feedforward_layernorm"}};
  constexpr LayerName kOuter[] = {{"wte", "model.embed_tokens"}, {"ln_f", "model.norm"}, {"ln_e", "model.embed_norm"}};
  std::vector<Weights::Rule> rules = LayerRules({kOuter});
  for (const std::string array : {".weight", ".bias"}) {
    const std::string of = "model.layers.#.self_attn.";
    rules.push_back({.from = "h.#.attn.c_attn" + array,
                     .to = {of + "q_proj" + array, of + "k_proj" + array, of + "v_proj" + array},
                     .parts = {gpt.config.heads, head.key_value_heads, head.key_value_heads}});
  }
  rules.push_back({"h.#", {"model.layers.#"}});
  WEFT_RETURN_IF_ERROR(result.weights.Apply(LayerRules({ends_of_layers})));
  WEFT_RETURN_IF_ERROR(result.weights.Apply(rules));
  return result;
}

absl::Status Write(const PublishedGpt& gpt, const std::string& folder, const WriteModelOptions&) {
  PublishedGpt full = gpt;
  if (gpt.config.names == GptConfig::Names::kGpt2 && gpt.config.attention.rotary) {
    WEFT_ASSIGN_OR_RETURN(full, WithLlamaNames(gpt));
  }
  const bool llama = full.config.names == GptConfig::Names::kLlama;
  if (!llama) {
    WEFT_ASSIGN_OR_RETURN(full, WithBiases(full));
  } else if (!WriteAsAny(full.config, gpt.model_type).ok()) {  // most families have rotary positions in halves
    WEFT_ASSIGN_OR_RETURN(full, WithRotary(full, RotaryLayout::kHalves));
  }
  WEFT_ASSIGN_OR_RETURN(const Json json, WriteAsAny(full.config, gpt.model_type));
  const DecoderFamily& family = *FindDecoder(json["model_type"].get_ref<const std::string&>());
  WEFT_RETURN_IF_ERROR(full.weights.Revert(OtherRules(family, full.config)));
  WEFT_RETURN_IF_ERROR(full.weights.Revert(LayersOf(family.model_type)));
  if (!llama) WEFT_RETURN_IF_ERROR(full.weights.Apply(Gpt2Prefixes()));
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

std::vector<std::vector<Weights::Rule>> NamesOf(const PublishedGpt& model) { return {LayersOf(model.model_type)}; }

absl::Status PublishAdapter(absl::string_view model_type, Weights* adapter) {
  if (model_type != "gpt2") return adapter->Revert(LayersOf(model_type));
  WEFT_RETURN_IF_ERROR(adapter->Apply(Gpt2Transposes()));
  return adapter->Apply(Gpt2Prefixes());
}

std::vector<std::string> TiedLayers(const PublishedGpt& model) {
  if (!model.config.tied_head) return {};
  return {std::string(TokenTable(model.config)), "lm_head"};
}

absl::Status Untie(PublishedGpt* model) {
  model->config.tied_head = false;
  return model->weights.AddCopy("lm_head.weight",
                                *model->weights.Find(absl::StrCat(TokenTable(model->config), ".weight")));
}

}  // namespace

template <>
absl::StatusOr<GptConfig> ConfigFromJson(const Json& json) {
  KeyReader keys(json);
  std::string type = "gpt2";
  keys.Field("model_type", type);
  const DecoderFamily* const family = FindDecoder(type);
  if (family == nullptr) {
    keys.Refuse("model_type", absl::StrJoin(ModelTypes(), ", "));
    return keys.Refused();
  }
  GptConfig config = family->defaults();
  family->list(keys, config);
  const size_t classes = family->classes[1].empty() ? 1 : 2;
  ReadUsualKeys(keys, absl::MakeConstSpan(family->classes).first(classes));
  keys.Harmless({"is_decoder"});
  return Finished(keys, config);
}

absl::StatusOr<Json> ToJson(const GptConfig& config) { return WriteAsAny(config, ""); }

std::vector<Weights::Rule> GptTensorsToDrop() {
  return {{"#.attn.bias", {}}, {"#.attention.bias", {}}, {"#.masked_bias", {}}, {"#.rotary_emb.inv_freq", {}}};
}

absl::StatusOr<PublishedGpt> WithRotary(const PublishedGpt& gpt, RotaryLayout layout) {
  if (gpt.config.attention.rotary == layout || !gpt.config.attention.rotary) return gpt;
  PublishedGpt result = {.config = gpt.config, .model_type = gpt.model_type};
  result.config.attention.rotary = layout;
  const AttentionVariant head =
      WithWidths(gpt.config.attention, gpt.config.ablation, gpt.config.heads, gpt.config.width);
  const int64_t width = head.key_width, turned = head.rotary_width != 0 ? head.rotary_width : width, half = turned / 2;
  for (const auto& [name, from] : gpt.weights.tensors()) {
    WEFT_ASSIGN_OR_RETURN(const Tensor to, result.weights.Add(name, from.type));
    bool moves = false;
    for (const char* const each : {".q_proj.", ".k_proj.", ".q_norm.", ".k_norm."}) {
      moves = moves || absl::StrContains(name, absl::StrCat(".self_attn", each));
    }
    if (!moves) {
      std::memcpy(to.data, from.data, from.type.bytes());
      continue;
    }
    // A head has `width` rows. Rotary positions turn its first `turned` rows, and half = turned / 2. In layout kPairs,
    // rotation k turns rows 2k and 2k + 1 of a head; in layout kHalves, it turns rows k and k + half.
    const int64_t rows = from.type.shape.dim(0), bytes = static_cast<int64_t>(from.type.bytes()) / rows;
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t first = row / width * width, i = row % width;
      const int64_t pairs = i < turned ? first + i % half * 2 + i / half : row;
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

const ModelFamily PublishedGpt::kFamily = {
    .name = "a GPT",
    .model_types = ModelTypes(),
    .read = Read,
    .write = OfAnyModel<Write>::Call,
    .from_run = FromRun,
    .to_run = OfAnyModel<ToRun>::Call,
    .record = OfAnyModel<RecordModel>::Call,
    .sizes = OfAnyModel<SizesOf>::Call,
    .vocabulary = OfAnyModel<VocabularyOf<PublishedGpt>>::Call,
    .continues_texts = true,
    .tied = OfAnyModel<TiedLayers>::Call,
    .untie = OfAnyModel<Untie>::Call,
    .own_names = OfAnyModel<NamesOf>::Call,
    .publish_adapter = PublishAdapter,
};

}  // namespace weft
