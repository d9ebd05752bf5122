// T5 (Raffel et al., 2020) and its successors: norms without means come first, scores are not scaled, and a learnt
// number for each head and bucket of distances is added to them. Sequences have no maximum length, so the context is
// that of the training, n_positions, which the files of T5 and FLAN-T5 have. Dropout of both stacks' last norm is left
// out.
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "weft/base/status.h"
#include "weft/formats/config_keys.h"
#include "weft/formats/published.h"
#include "weft/formats/translators.h"

namespace weft {
namespace {

const std::vector<TranslatorType>& TypeRows() {
  static const auto* const types = [] {
    TransformerConfig t5 = {.source_vocabulary = 32128,
                            .context = 512,
                            .norm = {.kind = NormKind::kRmsNorm, .epsilon = 1e-6},
                            .bias = false,
                            .positions = PositionKind::kNone,
                            .scale_embeddings = false,
                            .shared_embeddings = true};
    t5.pre_norm = true;
    t5.attention = {.key_width = 64, .distance_bias = DistanceBias::kBuckets, .score_scale = 1};
    t5.shared_distance_bias = true;
    TransformerConfig mt5 = t5;
    mt5.source_vocabulary = 250112;
    mt5.encoder_layers = 8;
    mt5.heads = 6;
    mt5.feed_forward = 1024;
    mt5.activation = Activation::kGeluTanh;
    mt5.gated = true;
    TransformerConfig umt5 = mt5;
    umt5.shared_distance_bias = false;
    constexpr absl::string_view kOldClass = "T5WithLMHeadModel";
    return new std::vector<TranslatorType>{{"t5", {"T5ForConditionalGeneration", kOldClass}, t5},
                                           {.model_type = "mt5",
                                            .classes = {"MT5ForConditionalGeneration", kOldClass},
                                            .usual = mt5,
                                            .scales_logits = false},
                                           {"umt5", {"UMT5ForConditionalGeneration", kOldClass}, umt5}};
  }();
  return *types;
}

void ListT5(Keys& keys, TransformerConfig& config) {
  keys.Field("vocab_size", config.source_vocabulary);
  keys.Field("n_positions", config.context);
  keys.Field("d_model", config.width);
  keys.Field("d_kv", config.attention.key_width);
  keys.Field("d_ff", config.feed_forward);
  keys.Field("num_layers", config.encoder_layers);
  keys.Field("num_heads", config.heads);
  keys.Field("relative_attention_num_buckets", config.attention.buckets);
  keys.Field("relative_attention_max_distance", config.attention.max_distance);
  keys.Field("dropout_rate", config.dropout);
  keys.Field("layer_norm_epsilon", config.norm.epsilon);
}

// Reads feed_forward_proj, such as "relu" and "gated-gelu". In the second, "gelu" is the approximation by tanh. The
// keys that transformers derives from it may be in the file, too, and come before it.
void ReadActivation(KeyReader& keys, TransformerConfig* config) {
  constexpr char kKey[] = "feed_forward_proj";
  if (const Json* const json = keys.Find(kKey); json != nullptr) {
    const std::string value = json->is_string() ? json->get<std::string>() : "";
    config->gated = absl::StartsWith(value, "gated-");
    const absl::string_view name = absl::StripPrefix(value, "gated-");
    bool known = false;
    for (const auto& [choice, activation] : kActivations) {
      if (name != choice) continue;
      config->activation = value == "gated-gelu" ? Activation::kGeluTanh : activation;
      known = true;
    }
    if (!known) keys.Refuse(kKey, "relu, gated-gelu or a similar name");
  }
  keys.Choice("dense_act_fn", kActivations, config->activation);
  keys.Field("is_gated_act", config->gated);
}

absl::StatusOr<TransformerConfig> ConfigOf(const TranslatorType& type, const Json& json) {
  KeyReader keys(json);
  keys.Only("model_type", type.model_type);
  TransformerConfig config = type.usual;
  ListT5(keys, config);
  config.target_vocabulary = config.source_vocabulary;
  config.attention_dropout = config.activation_dropout = config.dropout;
  config.decoder_layers = config.encoder_layers;
  keys.Field("num_decoder_layers", config.decoder_layers);
  if (config.decoder_layers < 1) keys.Refuse("num_decoder_layers", "a number from 1");
  keys.NotNull({"relative_attention_num_buckets", "relative_attention_max_distance"}, "a whole number");
  ReadActivation(keys, &config);
  // transformers 5 always ties the head, and takes the key as the sign of T5 version 1.1, which has its logits as they
  // are.
  bool tied = true, scales = true;
  keys.Field("tie_word_embeddings", tied);
  scales = tied;
  keys.Field("scale_decoder_outputs", scales);
  keys.NotNull({"scale_decoder_outputs"}, "true or false");
  keys.Only("num_hidden_layers", config.encoder_layers);
  if (type.scales_logits && scales) config.logits_scale = 1 / std::sqrt(static_cast<double>(config.width));
  keys.Harmless({"initializer_factor", "classifier_dropout", "is_decoder", "use_cache", "output_past"});
  ReadUsualKeys(keys, type.classes, /*encoder_decoder=*/true);
  return Finished(keys, config);
}

absl::StatusOr<Json> ToJson(const TranslatorType& type, const TransformerConfig& config,
                            const TranslationTokens& tokens) {
  TransformerConfig full = WithFeedForward(config);
  const std::string activation = NameOf(kActivations, full.activation);
  KeyWriter keys(type.model_type, type.classes[0]);
  keys.Write("is_encoder_decoder", true);
  ListT5(keys, full);
  keys.Write("d_kv", WithWidths(full.attention, full.ablation, full.heads, full.width).key_width);
  keys.Write("num_decoder_layers", full.decoder_layers);
  const bool usual = full.gated && full.activation == Activation::kGeluTanh;
  keys.Write("feed_forward_proj", usual ? "gated-gelu" : absl::StrCat(full.gated ? "gated-" : "", activation));
  keys.Write("tie_word_embeddings", full.logits_scale != 1);
  keys.Write("scale_decoder_outputs", full.logits_scale != 1);
  keys.Write("decoder_start_token_id", tokens.begin);
  keys.Write("eos_token_id", tokens.end);
  keys.Write("pad_token_id", tokens.padding);
  Json json = std::move(keys).Finish();
  absl::StatusOr<TransformerConfig> read = ConfigOf(type, json);
  if (read.ok()) read->tied_head = config.tied_head;  // the tensors tell
  WEFT_RETURN_IF_ERROR(CheckReadBack(type.model_type, config, read, /*training=*/false));
  return json;
}

// The names of a block's layers. F stands for the number of the feed-forward layer.
constexpr LayerName kLayers[] = {{"layer.0.SelfAttention.relative_attention_bias", "self_attn.relative_attention_bias"},
                                 {"layer.0.SelfAttention.q", "self_attn.q_proj"},
                                 {"layer.0.SelfAttention.k", "self_attn.k_proj"},
                                 {"layer.0.SelfAttention.v", "self_attn.v_proj"},
                                 {"layer.0.SelfAttention.o", "self_attn.out_proj"},
                                 {"layer.0.layer_norm", "self_attn_layer_norm"},
                                 {"layer.F.DenseReluDense.wo", "fc2"},
                                 {"layer.F.layer_norm", "final_layer_norm"}};
constexpr LayerName kGated[] = {{"layer.F.DenseReluDense.wi_0", "fc_gate"}, {"layer.F.DenseReluDense.wi_1", "fc1"}};
constexpr LayerName kNotGated[] = {{"layer.F.DenseReluDense.wi", "fc1"}};
constexpr LayerName kCross[] = {{"layer.1.EncDecAttention.q", "encoder_attn.q_proj"},
                                {"layer.1.EncDecAttention.k", "encoder_attn.k_proj"},
                                {"layer.1.EncDecAttention.v", "encoder_attn.v_proj"},
                                {"layer.1.EncDecAttention.o", "encoder_attn.out_proj"},
                                {"layer.1.layer_norm", "encoder_attn_layer_norm"}};

// Returns the rules from T5's names to those of Transformer.
std::vector<Weights::Rule> Rules(bool gated) {
  // Old files have this tensor, which no code reads.
  std::vector<Weights::Rule> rules = {{"decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight", {}}};
  for (const char* const side : {"encoder", "decoder"}) {
    const bool decoder = absl::string_view(side) == "decoder";
    const auto add = [&](absl::Span<const LayerName> names) {
      for (const auto& [published, own] : names) {
        const std::string from = absl::StrReplaceAll(published, {{"layer.F", decoder ? "layer.2" : "layer.1"}});
        rules.push_back(
            {absl::StrCat(side, ".block.#.", from, ".weight"), {absl::StrCat(side, ".layers.#.", own, ".weight")}});
      }
    };
    add(kLayers);
    add(gated ? absl::MakeSpan(kGated) : absl::MakeSpan(kNotGated));
    if (decoder) add(kCross);
    rules.push_back({absl::StrCat(side, ".final_layer_norm.weight"), {absl::StrCat(side, ".layer_norm.weight")}});
  }
  return rules;
}

absl::StatusOr<PublishedModel> Read(const TranslatorType& type, const std::string& folder, const Json& json) {
  WEFT_ASSIGN_OR_RETURN(TransformerConfig config, Annotate(ConfigOf(type, json), ConfigPath(folder)));
  WEFT_ASSIGN_OR_RETURN(Weights weights, ReadFolderWeights(folder, {Rules(config.gated)}));
  WEFT_RETURN_IF_ERROR(Annotate(TieTables(&config, &weights), weights.path()));
  WEFT_RETURN_IF_ERROR(weights.Fit(ParametersOf(PublishedTransformer{config})));
  return PublishedModel(PublishedTransformer{config, std::move(weights)});
}

std::string Lacking(const TranslatorType& type, const TransformerConfig& config, int32_t) {
  const absl::Status status = ToJson(type, config, {}).status();
  const std::string general = absl::StrCat("a configuration of ", type.model_type, " cannot say that ");
  return std::string(absl::StripPrefix(status.message(), general));
}

absl::StatusOr<Json> Publish(const TranslatorType& type, const TransformerConfig& config,
                             const TranslationTokens& tokens, Weights* weights) {
  WEFT_RETURN_IF_ERROR(weights->Revert(Rules(config.gated)));
  return ToJson(type, config, tokens);
}

}  // namespace

const TranslatorFamily kT5Family = {.types = TypeRows, .read = Read, .lacking = Lacking, .publish = Publish};

}  // namespace weft
