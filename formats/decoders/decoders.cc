// The table of decoder families, and the keys that several of them have.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "weft/base/status.h"
#include "weft/formats/all_decoders.h"
#include "weft/formats/decoders/decoder.h"
#include "weft/formats/published.h"
#include "weft/models/validate.h"

namespace weft {
namespace {

constexpr const DecoderFamily* kDecoders[] = {
    &kGpt2Decoder,    &kGptNanoDecoder,  &kLlamaDecoder,   &kMistralDecoder, &kQwen2Decoder,  &kQwen3Decoder,
    &kSmolLm3Decoder, &kOlmo2Decoder,    &kGraniteDecoder, &kGemmaDecoder,   &kGemma2Decoder, &kGemma3Decoder,
    &kPhi3Decoder,    &kStableLmDecoder, &kGptNeoxDecoder, &kGptJDecoder,    &kPhiDecoder,    &kFalconDecoder,
    &kOptDecoder,     &kBloomDecoder,    &kMixtralDecoder};

constexpr std::pair<const char*, RotaryScalingKind> kRopeTypes[] = {{"default", RotaryScalingKind::kNone},
                                                                    {"linear", RotaryScalingKind::kLinear},
                                                                    {"llama3", RotaryScalingKind::kLlama3},
                                                                    {"yarn", RotaryScalingKind::kYarn}};
constexpr char kSliding[] = "sliding_attention", kFull[] = "full_attention";

// Lists the numbers of a scaling of `scaling.kind`.
void ListScaling(Keys& keys, RotaryScaling& scaling) {
  const bool llama = scaling.kind == RotaryScalingKind::kLlama3, yarn = scaling.kind == RotaryScalingKind::kYarn;
  const auto needed = [&](const char* name, double& value) {
    if (keys.Find(name) == nullptr) keys.Refuse(name, "a number");
    keys.Field(name, value);
  };
  if (scaling.kind != RotaryScalingKind::kNone) needed("factor", scaling.factor);
  if (llama || yarn) keys.Field("original_max_position_embeddings", scaling.context);
  if (llama) {
    needed("low_freq_factor", scaling.slow);
    needed("high_freq_factor", scaling.fast);
  }
  if (!yarn) return;
  keys.Field("beta_slow", scaling.slow);
  keys.Field("beta_fast", scaling.fast);
  keys.Only("truncate", true);
  if (keys.reading()) {
    double mscale = 0, mscale_all = 0;
    keys.Field("mscale", mscale);
    keys.Field("mscale_all_dim", mscale_all);
    const auto gain = [&](double m) { return 0.1 * m * std::log(std::max(scaling.factor, 1.0)) + 1; };
    if (mscale != 0 && mscale_all != 0) scaling.gain = gain(mscale) / gain(mscale_all);
  }
  if (keys.reading() || scaling.gain != 0) keys.Field("attention_factor", scaling.gain);
}

// Reads the rotary positions in `json`, whose rope_theta is already set to its default.
void ReadRotary(const Json& json, const char* key, const RotaryKeys& names, double* part, Keys& keys,
                GptConfig& config) {
  if (!json.is_object()) return keys.Refuse(key, "an object");
  KeyReader own(json);
  RotaryScaling scaling;
  own.Choice("type", Choices<RotaryScalingKind>(kRopeTypes), scaling.kind);
  own.Choice("rope_type", Choices<RotaryScalingKind>(kRopeTypes), scaling.kind);
  own.Field("rope_theta", config.attention.rotary_base);
  own.NotNull({"rope_theta", "original_max_position_embeddings", "partial_rotary_factor"}, "a number");
  own.Field("partial_rotary_factor", *part);
  if (names.part == nullptr) own.Only("partial_rotary_factor", 1);
  if (!names.may_scale && scaling.kind != RotaryScalingKind::kNone) own.Refuse("rope_type", "default");
  const bool llama = scaling.kind == RotaryScalingKind::kLlama3, yarn = scaling.kind == RotaryScalingKind::kYarn;
  if (llama || yarn) scaling.context = config.context;
  ListScaling(own, scaling);
  if (const absl::Status status = own.Finish(); !status.ok()) return keys.Refuse(key, status.message());
  config.attention.rotary_scaling = scaling;
}

void WriteRotary(Keys& keys, const AttentionVariant& attention, const RotaryKeys& names) {
  if (names.part != nullptr) {
    const double width = static_cast<double>(attention.key_width);
    const double turned = attention.rotary_width != 0 ? static_cast<double>(attention.rotary_width) : width;
    const double part = turned / width;  // rounded up, if the product would be below `turned`
    keys.Write(names.part, part * width < turned ? std::nextafter(part, 1) : part);
  }
  RotaryScaling scaling = attention.rotary_scaling;
  if (scaling.kind == RotaryScalingKind::kNone) return;
  if (scaling.fast == 0) scaling.fast = scaling.kind == RotaryScalingKind::kLlama3 ? 4 : 32;
  KeyWriter own;
  own.Choice("rope_type", Choices<RotaryScalingKind>(kRopeTypes), scaling.kind);
  ListScaling(own, scaling);
  keys.Write("rope_scaling", std::move(own).Finish());
}

}  // namespace

absl::Span<const DecoderFamily* const> DecoderFamilies() { return kDecoders; }

const DecoderFamily* FindDecoder(absl::string_view model_type) {
  for (const DecoderFamily* const each : kDecoders) {
    if (each->model_type == model_type) return each;
  }
  return nullptr;
}

GptConfig LlamaDefaults(const DecoderSizes& sizes) {
  return {.vocabulary = sizes.vocabulary,
          .context = sizes.context,
          .layers = sizes.layers,
          .heads = sizes.heads,
          .width = sizes.width,
          .feed_forward = sizes.feed_forward != 0 ? sizes.feed_forward : 11008,
          .activation = Activation::kSilu,
          .tied_head = false,
          .bias = false,
          .norm = {.kind = NormKind::kRmsNorm, .epsilon = 1e-6},
          .gated = true,
          .attention = {.key_value_heads = sizes.key_value_heads,
                        .rotary = RotaryLayout::kHalves,
                        .projection_bias = false,
                        .output_bias = false},
          .names = GptConfig::Names::kLlama};
}

GptConfig LayerNormDefaults(const DecoderSizes& sizes) {
  GptConfig config = LlamaDefaults(sizes);
  config.feed_forward = sizes.feed_forward;
  config.embedding_dropout = config.attention_dropout = 0;
  config.activation = Activation::kGeluTanh;
  config.bias = true;
  config.norm = {.epsilon = 1e-5};
  config.gated = false;
  config.attention.projection_bias = config.attention.output_bias = std::nullopt;
  return config;
}

void ListLlamaKeys(Keys& keys, GptConfig& config, const char* activation, const char* epsilon) {
  ListSizes(keys, config);
  if (keys.IsNull("num_key_value_heads"))
    config.attention.key_value_heads = 0;  // each head has its own keys and values
  keys.SizeOrNull("num_key_value_heads", config.attention.key_value_heads);
  keys.Field("intermediate_size", config.feed_forward);
  keys.Choice(activation, kActivations, config.activation);
  keys.Field("attention_dropout", config.attention_dropout, config.dropout);
  keys.Field(epsilon, config.norm.epsilon);
  keys.Field("tie_word_embeddings", config.tied_head);
}

void ListRotary(Keys& keys, GptConfig& config, const RotaryKeys& names) {
  keys.Field(names.theta, config.attention.rotary_base);
  if (!keys.reading()) return WriteRotary(keys, config.attention, names);
  double part = names.usual_part;
  if (names.part != nullptr) keys.Field(names.part, part);
  const Json *const scaling = keys.Find("rope_scaling"), *const parameters = keys.Find("rope_parameters");
  if (scaling != nullptr && !scaling->empty()) {
    ReadRotary(*scaling, "rope_scaling", names, &part, keys, config);
  } else if (parameters != nullptr) {
    ReadRotary(*parameters, "rope_parameters", names, &part, keys, config);
  }
  if (names.part == nullptr || part == 1 || config.heads < 1) return;
  const AttentionVariant& v = config.attention;
  const int64_t width = v.key_width != 0 ? v.key_width : config.width / config.heads;
  const double turned = part > 0 && part < 1 ? std::floor(part * static_cast<double>(width)) : 0;
  config.attention.rotary_width = static_cast<int64_t>(turned);
  if (turned == 0 || config.attention.rotary_width % 2 != 0) {
    const bool scaled = scaling != nullptr && !scaling->empty();
    keys.Refuse(scaled                             ? "rope_scaling"
                : keys.Find(names.part) != nullptr ? names.part
                                                   : "rope_parameters",
                absl::StrCat(names.part, " with an even number of features"));
  }
}

int64_t WindowOf(const GptConfig& config) {
  for (const AttentionPattern& each : config.attention.patterns) {
    if (each.window != 0) return each.window;
  }
  return 0;
}

int64_t ListWindow(Keys& keys, const GptConfig& config, int64_t usual) {
  int64_t window = !keys.reading() ? WindowOf(config) : keys.IsNull("sliding_window") ? 0 : usual;
  keys.SizeOrNull("sliding_window", window);
  return window;
}

std::vector<AttentionPattern> PatternsByLayer(const GptConfig& config) {
  std::vector<AttentionPattern> patterns(config.layers > 0 && config.layers <= kMaxLayers ? config.layers : 0);
  const std::vector<AttentionPattern>& all = config.attention.patterns;
  for (size_t i = 0; i < patterns.size() && !all.empty(); ++i) patterns[i] = all[i % all.size()];
  return patterns;
}

void ListLayerTypes(Keys& keys, GptConfig& config, int64_t window, absl::FunctionRef<bool(int64_t)> slides) {
  std::vector<AttentionPattern> patterns = PatternsByLayer(config);
  if (!keys.reading()) {
    Json types = Json::array();
    for (const AttentionPattern& each : patterns) types.push_back(each.window != 0 ? kSliding : kFull);
    return keys.Write("layer_types", types);
  }
  const Json* const types = keys.Find("layer_types");
  if (types != nullptr && (!types->is_array() || types->size() != patterns.size())) {
    return keys.Refuse("layer_types", "a text for each of num_hidden_layers");
  }
  for (size_t i = 0; i < patterns.size(); ++i) {
    const bool sliding = types != nullptr ? (*types)[i] == kSliding : slides(static_cast<int64_t>(i));
    if (types != nullptr && !sliding && (*types)[i] != kFull) {
      return keys.Refuse("layer_types", absl::StrCat(kFull, " or ", kSliding));
    }
    if (sliding && window == 0) return keys.Refuse("layer_types", absl::StrCat(kFull, " without a sliding_window"));
    if (sliding) patterns[i].window = window;
  }
  config.attention.patterns = ShortestPatterns(std::move(patterns), config.layers);
}

}  // namespace weft
