// Classes of Hugging Face's transformers that are built like Marian. Each is a row of TypeRows: its model_type, the
// options that it fixes, and what its missing keys mean.
//
//   marian      norms come after each layer, positions are sinusoids, the two sides may have token tables of their own
//   pegasus     norms come first, positions are sinusoids, both sides and the output layer share one token table
//   m2m_100     as pegasus, but positions are Tensor2Tensor's sinusoids from pad_token_id + 1 on, and the output layer
//               has no bias; NLLB, too
//   blenderbot  as pegasus, but positions are a table of weights, which can hold any embeddings of positions
//   bart        as marian with one token table, but positions are a table whose first two rows are not used, and a norm
//               follows the embeddings
//   mbart       as bart, but norms come first
//
// The sinusoids of Marian and Pegasus have the frequencies of PositionKind::kSinusoidal: features i and C/2 + i are
// sine and cosine of one frequency, where this project has features 2i and 2i + 1. A permutation of the model's
// features in all weights makes both the same function. A table of positions that is not the class's sinusoids is read
// as PositionKind::kLearned.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "weft/base/status.h"
#include "weft/formats/config_keys.h"
#include "weft/formats/published.h"
#include "weft/formats/translators.h"
#include "weft/models/layers.h"

namespace weft {
namespace {

using Positions = PositionKind;

bool StoresPositions(const TranslatorType& type) { return type.usual.positions == Positions::kLearned; }
bool CountsFromPadding(const TranslatorType& type) { return type.usual.positions == Positions::kSinusoidalHalves; }

TransformerConfig Usual(int64_t vocabulary, int64_t context, int64_t encoder, int64_t decoder, int64_t heads,
                        int64_t width, bool pre_norm, Positions positions) {
  return {.source_vocabulary = vocabulary,
          .context = context,
          .encoder_layers = encoder,
          .decoder_layers = decoder,
          .heads = heads,
          .width = width,
          .feed_forward = 4 * width,
          .activation = Activation::kGelu,
          .pre_norm = pre_norm,
          .positions = positions,
          .scale_embeddings = false,
          .shared_embeddings = true};
}

const std::vector<TranslatorType>& TypeRows() {
  static const auto* const types = [] {
    TransformerConfig bart = Usual(50265, 1024, 12, 12, 16, 1024, /*pre_norm=*/false, Positions::kLearned);
    bart.first_position = 2;
    bart.embedding_norm = true;
    TransformerConfig mbart = bart;
    mbart.pre_norm = true;
    TransformerConfig m2m = Usual(128112, 1024, 12, 12, 16, 1024, true, Positions::kSinusoidalHalves);
    m2m.activation = Activation::kRelu;
    m2m.attention_dropout = 0.1;
    m2m.scale_embeddings = true;
    return new std::vector<TranslatorType>{
        {"marian",
         {"MarianMTModel"},
         Usual(58101, 1024, 12, 12, 16, 1024, false, Positions::kSinusoidal),
         /*separate_tables=*/true},
        {"pegasus",
         {"PegasusForConditionalGeneration"},
         Usual(50265, 1024, 12, 12, 16, 1024, true, Positions::kSinusoidal)},
        {"m2m_100", {"M2M100ForConditionalGeneration", "M2M100Model"}, m2m, false, /*logits_bias=*/false},
        {"blenderbot",
         {"BlenderbotForConditionalGeneration"},
         Usual(8008, 128, 2, 24, 32, 2560, true, Positions::kLearned)},
        {"bart", {"BartForConditionalGeneration", "BartModel"}, bart},
        {"mbart", {"MBartForConditionalGeneration", "MBartModel"}, mbart}};
  }();
  return *types;
}

std::string Lacking(const TranslatorType& type, const TransformerConfig& config, int32_t padding) {
  constexpr double kEpsilon = 1e-5;
  const TransformerConfig& usual = type.usual;
  const auto says = [](const char* option, bool value) {
    return absl::StrCat(option, value ? " is true" : " is false");
  };
  TransformerConfig plain = config;
  plain.embedding_norm = false;
  plain.first_position = 0;
  if (std::string unusual = UnusualOption(plain); !unusual.empty()) return unusual;
  if (config.norm.kind == NormKind::kRmsNorm) return "norm is rms_norm";
  if (config.norm.kind == NormKind::kBatchNorm) return "norm is batch_norm";
  if (config.norm.epsilon != kEpsilon) return absl::StrCat("the norm's epsilon is ", config.norm.epsilon);
  if (config.dtype != kF32) return "dtype is f64";
  if (config.pre_norm != usual.pre_norm) return says("pre_norm", config.pre_norm);
  if (!type.separate_tables && !config.shared_embeddings) return "shared_embeddings is false";
  if (config.shared_embeddings && !config.tied_head) return "tied_head is false, but shared_embeddings is true";
  if (config.embedding_norm != usual.embedding_norm) return says("embedding_norm", config.embedding_norm);
  if (config.head_bias && !type.logits_bias) return "head_bias is true";
  // A table without unused rows can hold sinusoids from any position.
  const bool sinusoids = config.positions != Positions::kLearned;
  if (StoresPositions(type) && usual.first_position == 0 && sinusoids) return "";
  if (config.positions != usual.positions) {
    return absl::StrCat("positions are ", NameOf(kPositionNames, config.positions));
  }
  const int64_t first = CountsFromPadding(type) ? int64_t{padding} + 1 : usual.first_position;
  return config.first_position == first ? "" : absl::StrCat("first_position is ", config.first_position);
}

// Lists the keys of a configuration of `type`, which is read with the type's fixed and missing keys, or is written.
void ListMarian(Keys& keys, const TranslatorType& type, TransformerConfig& config) {
  keys.Field("vocab_size", config.source_vocabulary);
  ListTranslator(keys, config);
  keys.Field("scale_embedding", config.scale_embeddings);
  keys.Field("tie_word_embeddings", config.tied_head);
  if (keys.reading() && CountsFromPadding(type)) {
    int64_t padding = 1;
    keys.Field("pad_token_id", padding);
    const bool known = padding >= 0 && padding < config.source_vocabulary && !keys.IsNull("pad_token_id");
    if (!known) keys.Refuse("pad_token_id", "a token of the vocabulary");
    config.first_position = known ? padding + 1 : 1;
  }
  keys.NotNull({"scale_embedding"}, "true or false");
  if (keys.reading()) config.target_vocabulary = config.source_vocabulary;
  if (type.separate_tables) {
    keys.Field("share_encoder_decoder_embeddings", config.shared_embeddings);
    // The classes read the key only if the tables are separate.
    int64_t unused = config.target_vocabulary;
    keys.Field("decoder_vocab_size", config.shared_embeddings ? unused : config.target_vocabulary);
  }
  if (config.shared_embeddings) keys.Only("tie_word_embeddings", true);
  // A missing key has the class's default, not the encoder's value.
  const auto same = [&](const char* key, int64_t usual, int64_t encoder) {
    int64_t decoder = keys.reading() ? usual : encoder;
    keys.Field(key, decoder);
    const std::string wanted = absl::StrCat(encoder, ", as encoder", absl::StripPrefix(key, "decoder"));
    if (decoder == encoder) return;
    keys.Refuse(key, keys.Find(key) != nullptr ? wanted : absl::StrCat(wanted, "; a missing key means ", usual));
  };
  same("decoder_attention_heads", type.usual.heads, config.heads);
  same("decoder_ffn_dim", type.usual.feed_forward, config.feed_forward);
  keys.Only("num_hidden_layers", config.encoder_layers);
  keys.Write("num_hidden_layers", config.encoder_layers);
}

absl::StatusOr<TransformerConfig> MarianConfigFromJson(const TranslatorType& type, const Json& json) {
  KeyReader keys(json);
  keys.Only("model_type", type.model_type);
  TransformerConfig config = type.usual;
  ListMarian(keys, type, config);
  // Keys of older versions, which each class has with one value only.
  keys.Only("normalize_before", config.pre_norm);
  keys.Only("normalize_embedding", config.embedding_norm);
  keys.Only("add_final_layer_norm", config.pre_norm);
  keys.Only("static_position_embeddings", !StoresPositions(type));
  keys.Only("add_bias_logits", false);
  // transformers 5 takes a forced begin token from other keys only, so the key force_bos_token_to_be_generated of
  // DistilBART changes nothing. The last two are of DistilBART's training.
  keys.Harmless({"encoder_layerdrop", "decoder_layerdrop", "layerdrop", "init_std", "classif_dropout",
                 "classifier_dropout", "extra_pos_embeddings", "gradient_checkpointing", "is_decoder", "use_cache",
                 "force_bos_token_to_be_generated", "replacing_rate", "save_step"});
  ReadUsualKeys(keys, type.classes, /*encoder_decoder=*/true);
  return Finished(keys, config);
}

Json MarianToJson(const TranslatorType& type, const TransformerConfig& config, const TranslationTokens& tokens) {
  KeyWriter keys(type.model_type, type.classes.front());
  keys.Write("is_encoder_decoder", true);
  TransformerConfig full = WithFeedForward(config);
  ListMarian(keys, type, full);
  keys.Write("decoder_start_token_id", tokens.begin);
  keys.Write("bos_token_id", tokens.begin);
  keys.Write("eos_token_id", tokens.end);
  keys.Write("pad_token_id", tokens.padding);
  // The classes' own defaults would force an end token at the maximum length, and forbid repeated phrases.
  keys.Write("forced_eos_token_id", nullptr);
  if (type.model_type == absl::string_view("blenderbot")) keys.Write("encoder_no_repeat_ngram_size", 0);
  return std::move(keys).Finish();
}

constexpr absl::string_view kSides[] = {"encoder", "decoder"};

// The axis of a tensor that has the model's C features.
enum class Features : uint8_t { kNone, kRows, kColumns };

Features FeaturesOf(absl::string_view name) {
  for (const char* end : {"q_proj.weight", "k_proj.weight", "v_proj.weight", "fc1.weight", "embed_tokens.weight",
                          "shared.weight", "lm_head.weight"}) {
    if (absl::EndsWith(name, end)) return Features::kColumns;
  }
  for (const char* end :
       {"out_proj.weight", "out_proj.bias", "fc2.weight", "fc2.bias", "layer_norm.weight", "layer_norm.bias"}) {
    if (absl::EndsWith(name, end)) return Features::kRows;
  }
  return Features::kNone;
}

// Copies all tensors with the model's features in another order: from this project's interleaved order to halves or,
// if not `to_halves`, back.
absl::StatusOr<Weights> Permute(const Weights& weights, bool to_halves) {
  Weights permuted;
  for (const auto& [name, from] : weights.tensors()) {
    WEFT_ASSIGN_OR_RETURN(const Tensor to, permuted.Add(name, from.type));
    const Features axis = FeaturesOf(name);
    if (axis == Features::kNone || from.type.shape.rank() == 0) {
      std::memcpy(to.data, from.data, from.type.bytes());
      continue;
    }
    const bool columns = axis == Features::kColumns;
    const int64_t features = from.type.shape.dim(columns ? -1 : 0), half = features / 2;
    const int64_t others = from.type.shape.elements() / std::max<int64_t>(features, 1);
    for (int64_t i = 0; i < features; ++i) {
      // Feature i in halves is feature 2i, or 2 (i - C/2) + 1, of the interleaved order.
      const int64_t in_halves = i, interleaved = i < half ? 2 * i : 2 * (i - half) + 1;
      const int64_t source = to_halves ? interleaved : in_halves, target = to_halves ? in_halves : interleaved;
      for (int64_t j = 0; j < others; ++j) {
        const auto at = [&](int64_t feature) { return columns ? j * features + feature : feature * others + j; };
        to.as<float>()[at(target)] = from.as<float>()[at(source)];
      }
    }
  }
  return permuted;
}

std::string PositionsName(absl::string_view side) { return absl::StrCat(side, ".embed_positions.weight"); }

// Renames a tensor, which gets another shape of as many elements.
absl::Status Reshape(const std::string& from, const std::string& to, const Shape& shape, Weights* weights) {
  const Tensor* const tensor = weights->Find(from);
  if (tensor == nullptr || tensor->type.shape.elements() != shape.elements()) return absl::OkStatus();
  const Tensor old = *tensor;
  WEFT_RETURN_IF_ERROR(weights->Apply({{from, {}}}));
  return weights->AddCopy(to, {{old.type.dtype, shape}, old.data});
}

constexpr char kLogitsBias[] = "final_logits_bias", kHeadBias[] = "lm_head.bias";

// Reports whether both sides' tables of positions, if they are there, are the class's sinusoids.
bool PositionsAreSinusoids(const Weights& weights, int64_t width) {
  return absl::c_all_of(kSides, [&](absl::string_view side) {
    const Tensor* const table = weights.Find(PositionsName(side));
    if (table == nullptr || table->type.shape.rank() != 2 || table->type.shape.dim(1) != width) return true;
    return HasValues(*table, [&](int64_t position, int64_t feature) {
      const int64_t half = width / 2, interleaved = feature < half ? 2 * feature : 2 * (feature - half) + 1;
      return Sinusoid(position, interleaved, width, SinusoidLayout::kInterleaved);
    });
  });
}

absl::StatusOr<PublishedModel> Read(const TranslatorType& type, const std::string& folder, const Json& json) {
  WEFT_ASSIGN_OR_RETURN(TransformerConfig config, Annotate(MarianConfigFromJson(type, json), ConfigPath(folder)));
  WEFT_ASSIGN_OR_RETURN(Weights weights, ReadFolderWeights(folder, {{{"model.#", {"#"}}}}));
  WEFT_RETURN_IF_ERROR(Annotate(TieTables(&config, &weights), weights.path()));
  std::vector<Weights::Rule> dropped = {{"encoder.version", {}}, {"decoder.version", {}}};  // of old files
  if (!config.shared_embeddings) dropped.push_back({"shared.weight", {}});
  if (config.positions == Positions::kSinusoidalHalves) {
    dropped.push_back({"#.embed_positions.weights", {}});
  } else if (config.positions == Positions::kSinusoidal && PositionsAreSinusoids(weights, config.width)) {
    for (const absl::string_view side : kSides) dropped.push_back({PositionsName(side), {}});
  } else {
    config.positions = Positions::kLearned;
  }
  WEFT_RETURN_IF_ERROR(Annotate(weights.Apply(dropped), weights.path()));
  const Tensor* const bias = weights.Find(kLogitsBias);
  config.head_bias = bias != nullptr && bias->type.dtype == kF32 &&
                     absl::c_any_of(bias->span<const float>(), [](float value) { return value != 0; });
  if (config.head_bias) {
    WEFT_RETURN_IF_ERROR(Reshape(kLogitsBias, kHeadBias, {config.target_vocabulary}, &weights));
  } else {
    WEFT_RETURN_IF_ERROR(weights.Apply({{kLogitsBias, {}}}));
  }
  // Permute needs the shapes that Check has found.
  WEFT_RETURN_IF_ERROR(weights.Fit(ParametersOf(PublishedTransformer{config})));
  if (config.positions == Positions::kSinusoidal) {
    WEFT_ASSIGN_OR_RETURN(weights, Permute(weights, /*to_halves=*/false));
  }
  return PublishedModel(PublishedTransformer{config, std::move(weights)});
}

absl::StatusOr<Json> Publish(const TranslatorType& type, const TransformerConfig& model,
                             const TranslationTokens& tokens, Weights* weights) {
  TransformerConfig config = model;
  if (type.usual.positions == Positions::kSinusoidal) {
    WEFT_ASSIGN_OR_RETURN(*weights, Permute(*weights, /*to_halves=*/true));
  } else if (StoresPositions(type) && config.positions != Positions::kLearned) {
    for (const absl::string_view side : kSides) {
      WEFT_RETURN_IF_ERROR(AddSinusoids(PositionsName(side), config.context, config, weights));
    }
  }
  config.bias = true;
  WEFT_RETURN_IF_ERROR(AddZeroBiases(ParametersOf(PublishedTransformer{config}), weights));
  if (type.logits_bias) {
    if (!config.head_bias) WEFT_RETURN_IF_ERROR(weights->Add(kHeadBias, {kF32, {config.target_vocabulary}}).status());
    WEFT_RETURN_IF_ERROR(Reshape(kHeadBias, kLogitsBias, {1, config.target_vocabulary}, weights));
  }
  WEFT_RETURN_IF_ERROR(weights->Apply(
      {{"encoder.#", {"model.encoder.#"}}, {"decoder.#", {"model.decoder.#"}}, {"shared.#", {"model.shared.#"}}}));
  return MarianToJson(type, config, tokens);
}

}  // namespace

const TranslatorFamily kMarianFamily = {.types = TypeRows, .read = Read, .lacking = Lacking, .publish = Publish};

}  // namespace weft
