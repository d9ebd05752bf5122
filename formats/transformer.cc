// This file defines PublishedTransformer::kFamily: encoder-decoder Transformers with this project's own model_type
// "transformer", and those of Hugging Face's classes (translators.h). The own model_type has the keys and names of
// Marian and BART where these have them. FromRun describes the Transformer of a training run.
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "weft/base/json.h"
#include "weft/base/status.h"
#include "weft/formats/config_json.h"
#include "weft/formats/config_keys.h"
#include "weft/formats/generation.h"
#include "weft/formats/published.h"
#include "weft/formats/token_texts.h"
#include "weft/formats/translators.h"

namespace weft {
namespace {

using Positions = PositionKind;
using Memory = TransformerConfig::Memory;

constexpr std::pair<const char*, Memory> kMemories[] = {{"last", Memory::kLast}, {"same_layer", Memory::kSameLayer}};
constexpr std::pair<const char*, NormKind> kNorms[] = {{"layer_norm", NormKind::kLayerNorm},
                                                       {"rms_norm", NormKind::kRmsNorm}};

void ListTransformer(Keys& keys, TransformerConfig& config) {
  keys.Field("vocab_size", config.source_vocabulary);
  keys.Field("decoder_vocab_size", config.target_vocabulary);
  ListTranslator(keys, config);
  keys.Field("label_smoothing", config.label_smoothing);
  keys.Field("normalize_before", config.pre_norm);
  keys.Choice("norm_type", Choices<NormKind>(kNorms), config.norm.kind);
  keys.Field("layer_norm_eps", config.norm.epsilon);
  keys.Field("use_bias", config.bias);
  keys.Choice("position_embedding_type", Choices<Positions>(kPositionNames), config.positions);
  keys.Field("first_position", config.first_position);
  keys.Field("scale_embedding", config.scale_embeddings);
  keys.Field("share_encoder_decoder_embeddings", config.shared_embeddings);
  keys.Field("tie_word_embeddings", config.tied_head);
  keys.Field("head_bias", config.head_bias);
  keys.Choice("cross_attention_memory", Choices<Memory>(kMemories), config.memory);
  keys.SizeOrNull("query_width", config.attention.query_width);
  keys.SizeOrNull("key_width", config.attention.key_width);
  keys.SizeOrNull("value_width", config.attention.value_width);
  keys.Choice("score_function", Choices<ScoreFunction>(kScoreNames), config.attention.score);
  keys.SizeOrNull("score_width", config.attention.score_width);
  keys.Choice("head_merge", Choices<HeadMerge>(kMergeNames), config.attention.merge);
}

// Reads [[window, stride], ...].
void ReadPatterns(KeyReader& keys, TransformerConfig& config) {
  constexpr char kKey[] = "attention_patterns";
  const Json* const json = keys.Find(kKey);
  if (json == nullptr) return;
  const auto is_size = [](const Json& size) { return WholeNumber(size).has_value(); };
  for (const Json& pattern : json->is_array() ? *json : Json::array({0})) {
    if (!pattern.is_array() || pattern.size() != 2 || !is_size(pattern[0]) || !is_size(pattern[1])) {
      return keys.Refuse(kKey, "pairs of a window and a stride");
    }
    config.attention.patterns.push_back({.window = pattern[0], .stride = pattern[1]});
  }
}

constexpr const TranslatorFamily* kFamilies[] = {&kMarianFamily, &kT5Family};

void RecordModel(const PublishedTransformer& model, int64_t tokens, bool, Tape* tape) {
  const TransformerConfig& config = model.config;
  const Var source = TokensInput(tape, "source", tokens, config.source_vocabulary);
  Transformer(config).Logits(source, TokensInput(tape, "target", tokens, config.target_vocabulary));
}

ModelSizes SizesOf(const PublishedTransformer& model) {
  const TransformerConfig c = WithFeedForward(model.config);
  const AttentionVariant head = WithWidths(c.attention, c.ablation, c.heads, c.width);
  const bool same = c.source_vocabulary == c.target_vocabulary;
  ModelSizes sizes = {.sizes = {{"C", "width", c.width},
                                {"F", "feed-forward width", c.feed_forward},
                                {same ? "V" : "S", same ? "vocabulary" : "source vocabulary", c.source_vocabulary}},
                      .context = c.context,
                      .cache_bytes = CacheBytes(c.decoder_layers, head)};
  if (!same) sizes.sizes.push_back({"V", "target vocabulary", c.target_vocabulary});
  sizes.sizes.push_back({"T", "context", c.context});
  return sizes;
}

absl::StatusOr<PublishedModel> Read(const std::string& folder, const Json& json) {
  const Json* const model_type = FindModelType(json);
  for (const TranslatorFamily* const family : kFamilies) {
    for (const TranslatorType& type : family->types()) {
      if (model_type != nullptr && *model_type == type.model_type) return family->read(type, folder, json);
    }
  }
  TransformerConfig config;
  WEFT_RETURN_IF_ERROR(Annotate(ReadModelConfig(json, &config), ConfigPath(folder)));
  WEFT_RETURN_IF_ERROR(Annotate(Validate(config), ConfigPath(folder)));
  WEFT_ASSIGN_OR_RETURN(std::optional<TokenNames> tokens, Annotate(ReadTokenNames(json), ConfigPath(folder)));
  WEFT_ASSIGN_OR_RETURN(Weights weights, ReadFolderWeights(folder, {}));
  WEFT_RETURN_IF_ERROR(weights.Fit(ParametersOf(PublishedTransformer{config})));
  return PublishedModel(PublishedTransformer{config, std::move(weights), std::move(tokens)});
}

// Writes the model as `type`. If nothing in `folder` tells how to generate, also writes generation_config.json
// and what the tokenizer lacks.
absl::Status WritePublished(const TranslatorFamily& family, const TranslatorType& type, const TransformerConfig& config,
                            const TranslationTokens& tokens, Weights weights, const std::string& folder) {
  WEFT_ASSIGN_OR_RETURN(const Json json, family.publish(type, config, tokens, &weights));
  if (!tokens.published) {
    WEFT_RETURN_IF_ERROR(CheckExpressible(type.model_type, {{tokens.source_begin, "sources have a begin token"},
                                                            {!tokens.source_end, "sources have no end token"}}));
    WEFT_RETURN_IF_ERROR(WriteTranslationTokenizer(folder, config.context, tokens));
    WEFT_RETURN_IF_ERROR(WriteJson(folder + "/" + kGenerationConfig, {{"decoder_start_token_id", tokens.begin},
                                                                      {"bos_token_id", tokens.begin},
                                                                      {"eos_token_id", tokens.end},
                                                                      {"pad_token_id", tokens.padding},
                                                                      {"max_length", config.context},
                                                                      // As weft translate searches by default.
                                                                      {"num_beams", 4},
                                                                      {"early_stopping", true}}));
  }
  return WriteModelFolder(folder, json, weights);
}

absl::Status Write(const PublishedTransformer& transformer, const std::string& folder,
                   const WriteModelOptions& options) {
  TransformerConfig config = transformer.config;
  config.positions = Resolve(config.positions, config.attention, Positions::kSinusoidal);
  WEFT_RETURN_IF_ERROR(Validate(config));
  const absl::StatusOr<TranslationTokens> tokens = ReadTranslationTokens(folder, transformer.tokens);
  const int32_t padding = tokens.ok() ? tokens->padding : TranslationTokens().padding;
  std::vector<std::string> reasons;
  for (const TranslatorFamily* const family : kFamilies) {
    for (const TranslatorType& type : family->types()) {
      const std::string lacking = family->lacking(type, config, padding);
      if (lacking.empty()) {
        WEFT_RETURN_IF_ERROR(tokens.status());
        return WritePublished(*family, type, config, *tokens, transformer.weights, folder);
      }
      reasons.push_back(absl::StrCat("not ", type.model_type, ", because ", lacking));
    }
  }
  if (options.published_classes_only) {
    return InvalidArgument("no class of Hugging Face has this Transformer: ", absl::StrJoin(reasons, "; "));
  }
  WEFT_ASSIGN_OR_RETURN(Json json, WriteModelConfig(transformer.config));
  WriteTokenNames(transformer.tokens, &json);
  return WriteModelFolder(folder, json, transformer.weights);
}

const std::vector<absl::string_view>& ModelTypes() {
  static const auto* const types = [] {
    auto* const all = new std::vector<absl::string_view>{"transformer"};
    for (const TranslatorFamily* const family : kFamilies) {
      for (const TranslatorType& type : family->types()) all->push_back(type.model_type);
    }
    return all;
  }();
  return *types;
}

absl::StatusOr<PublishedModel> FromRun(const std::string&, const Json& run) {
  TransformerConfig config;
  WEFT_RETURN_IF_ERROR(ReadRunModel(run, &config));
  WEFT_RETURN_IF_ERROR(Validate(config));
  WEFT_ASSIGN_OR_RETURN(std::optional<TokenNames> tokens, ReadTokenNames(run));
  return PublishedModel(PublishedTransformer{config, {}, std::move(tokens)});
}

absl::StatusOr<Json> ToRun(const PublishedTransformer& transformer) {
  WEFT_ASSIGN_OR_RETURN(Json config, WriteModelConfig(transformer.config));
  Json run = {{"model", std::move(config)}};
  WriteTokenNames(transformer.tokens, &run);
  return run;
}

std::vector<std::string> TiedLayers(const PublishedTransformer& model) {
  std::vector<std::string> layers;
  if (model.config.shared_embeddings) layers.push_back("shared");
  if (model.config.tied_head) layers.push_back("decoder.embed_tokens");
  return layers;
}

}  // namespace

template <>
absl::StatusOr<TransformerConfig> ConfigFromJson(const Json& json) {
  KeyReader keys(json);
  TransformerConfig config;
  keys.Only("model_type", "transformer");
  ListTransformer(keys, config);
  ReadPatterns(keys, config);
  if (keys.Find("decoder_vocab_size") == nullptr) config.target_vocabulary = config.source_vocabulary;
  keys.Only("decoder_attention_heads", config.heads);
  keys.Only("decoder_ffn_dim", config.feed_forward);
  keys.Only("is_encoder_decoder", true);
  keys.Harmless({"architectures"});
  keys.Harmless(kTokenNameKeys);
  return Finished(keys, config);
}

absl::StatusOr<Json> ToJson(const TransformerConfig& config) {
  WEFT_RETURN_IF_ERROR(Validate(config));
  KeyWriter keys;
  keys.Write("model_type", "transformer");
  keys.Write("is_encoder_decoder", true);
  TransformerConfig full = WithFeedForward(config);
  ListTransformer(keys, full);
  keys.Field("decoder_attention_heads", full.heads);
  keys.Field("decoder_ffn_dim", full.feed_forward);
  Json patterns = Json::array();
  for (const AttentionPattern& pattern : config.attention.patterns)
    patterns.push_back({pattern.window, pattern.stride});
  if (!patterns.empty()) keys.Write("attention_patterns", patterns);
  Json json = std::move(keys).Finish();
  WEFT_RETURN_IF_ERROR(CheckReadBack("transformer", config, ConfigFromJson<TransformerConfig>(json)));
  return json;
}

absl::Status TieTables(TransformerConfig* config, Weights* weights) {
  const std::string table = config->shared_embeddings ? "shared.weight" : "decoder.embed_tokens.weight";
  for (const char* const copy : {"decoder.embed_tokens.weight", "encoder.embed_tokens.weight"}) {
    if (config->shared_embeddings) WEFT_RETURN_IF_ERROR(weights->Tie(table, copy));
  }
  config->tied_head = config->tied_head && weights->Tie(table, "lm_head.weight").ok();
  return absl::OkStatus();
}

const ModelFamily PublishedTransformer::kFamily = {
    .name = "an encoder-decoder Transformer",
    .model_types = ModelTypes(),
    .read = Read,
    .write = OfAnyModel<Write>::Call,
    .from_run = FromRun,
    .to_run = OfAnyModel<ToRun>::Call,
    .record = OfAnyModel<RecordModel>::Call,
    .sizes = OfAnyModel<SizesOf>::Call,
    .tied = OfAnyModel<TiedLayers>::Call,
};

}  // namespace weft
