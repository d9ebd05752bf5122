// This file defines PublishedTransformer::kFamily: encoder-decoder Transformers with this project's own model_type
// "transformer". Keys and names are those of Hugging Face's Marian and BART where these have them. marian.cc reads and
// writes the classes that Hugging Face has. FromRun describes the Transformer of a training run.
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "weft/base/json.h"
#include "weft/base/status.h"
#include "weft/formats/config_json.h"
#include "weft/formats/config_keys.h"
#include "weft/formats/marian.h"
#include "weft/formats/published.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;
using Positions = PositionKind;
using Memory = TransformerConfig::Memory;

constexpr std::pair<const char*, Positions> kPositions[] = {{"sinusoidal", Positions::kSinusoidal},
                                                            {"sinusoidal_halves", Positions::kSinusoidalHalves},
                                                            {"learned", Positions::kLearned},
                                                            {"auto", Positions::kAuto},
                                                            {"none", Positions::kNone}};
constexpr std::pair<const char*, Memory> kMemories[] = {{"last", Memory::kLast}, {"same_layer", Memory::kSameLayer}};
constexpr std::pair<const char*, NormKind> kNorms[] = {{"layer_norm", NormKind::kLayerNorm},
                                                       {"rms_norm", NormKind::kRmsNorm}};

template <class Keys, class Config>
void ListTransformer(Keys& keys, Config& config) {
  keys.Field("vocab_size", config.source_vocabulary);
  keys.Field("decoder_vocab_size", config.target_vocabulary);
  ListTranslator(keys, config);
  keys.Field("label_smoothing", config.label_smoothing);
  keys.Field("normalize_before", config.pre_norm);
  keys.Choice("norm_type", Choices<NormKind>(kNorms), config.norm.kind);
  keys.Field("layer_norm_eps", config.norm.epsilon);
  keys.Field("use_bias", config.bias);
  keys.Choice("position_embedding_type", Choices<Positions>(kPositions), config.positions);
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
  keys.Field("model_type", "transformer");
  keys.Field("is_encoder_decoder", true);
  TransformerConfig full = WithFeedForward(config);
  ListTransformer(keys, full);
  keys.Field("decoder_attention_heads", full.heads);
  keys.Field("decoder_ffn_dim", full.feed_forward);
  Json patterns = Json::array();
  for (const AttentionPattern& pattern : config.attention.patterns)
    patterns.push_back({pattern.window, pattern.stride});
  if (!patterns.empty()) keys.Field("attention_patterns", patterns);
  Json json = std::move(keys).Finish();
  WEFT_RETURN_IF_ERROR(CheckReadBack("transformer", config, ConfigFromJson<TransformerConfig>(json)));
  return json;
}

namespace {

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
  if (IsMarian(json)) return ReadMarian(folder, json);
  TransformerConfig config;
  WEFT_RETURN_IF_ERROR(Annotate(ReadModelConfig(json, &config), ConfigPath(folder)));
  WEFT_RETURN_IF_ERROR(Annotate(Validate(config), ConfigPath(folder)));
  WEFT_ASSIGN_OR_RETURN(std::optional<TokenNames> tokens, Annotate(ReadTokenNames(json), ConfigPath(folder)));
  WEFT_ASSIGN_OR_RETURN(Weights weights, ReadFolderWeights(folder, {}));
  WEFT_RETURN_IF_ERROR(weights.Fit(ParametersOf(PublishedTransformer{config})));
  return PublishedModel(PublishedTransformer{config, std::move(weights), std::move(tokens)});
}

absl::Status Write(const PublishedTransformer& transformer, const std::string& folder,
                   const WriteModelOptions& options) {
  if (options.published_classes_only || MarianTypeFor(transformer.config).ok()) {
    return WriteMarian(folder, transformer);
  }
  WEFT_ASSIGN_OR_RETURN(Json json, WriteModelConfig(transformer.config));
  WriteTokenNames(transformer.tokens, &json);
  return WriteModelFolder(folder, json, transformer.weights);
}

constexpr absl::string_view kModelTypes[] = {"transformer", "marian", "pegasus", "blenderbot"};

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

const ModelFamily PublishedTransformer::kFamily = {
    .name = "an encoder-decoder Transformer",
    .model_types = kModelTypes,
    .read = Read,
    .write = OfAnyModel<Write>::Call,
    .from_run = FromRun,
    .to_run = OfAnyModel<ToRun>::Call,
    .record = OfAnyModel<RecordModel>::Call,
    .sizes = OfAnyModel<SizesOf>::Call,
    .tied = OfAnyModel<TiedLayers>::Call,
};

}  // namespace weft
