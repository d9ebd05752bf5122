// Families share most rows. The functions below make these rows for the fields of any configuration.
#include "weft/models/options.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "weft/base/decimal.h"
#include "weft/base/status.h"

namespace weft {
namespace {

constexpr std::pair<const char*, Activation> kActivations[] = {{"gelu-tanh", Activation::kGeluTanh},
                                                               {"gelu", Activation::kGelu},
                                                               {"relu", Activation::kRelu},
                                                               {"silu", Activation::kSilu}};
constexpr std::pair<const char*, NormKind> kNorms[] = {
    {"layer-norm", NormKind::kLayerNorm}, {"rms-norm", NormKind::kRmsNorm}, {"batch-norm", NormKind::kBatchNorm}};
constexpr std::pair<const char*, PositionKind> kPositions[] = {{"auto", PositionKind::kAuto},
                                                               {"learned", PositionKind::kLearned},
                                                               {"sinusoidal", PositionKind::kSinusoidal},
                                                               {"sinusoidal-halves", PositionKind::kSinusoidalHalves},
                                                               {"none", PositionKind::kNone}};
constexpr std::pair<const char*, DistanceBias> kBiases[] = {
    {"none", DistanceBias::kNone}, {"alibi", DistanceBias::kAlibi}, {"buckets", DistanceBias::kBuckets}};
constexpr std::pair<const char*, std::optional<RotaryLayout>> kRotary[] = {
    {"none", std::nullopt}, {"halves", RotaryLayout::kHalves}, {"pairs", RotaryLayout::kPairs}};
constexpr std::pair<const char*, RotaryScalingKind> kScalings[] = {{"none", RotaryScalingKind::kNone},
                                                                   {"linear", RotaryScalingKind::kLinear},
                                                                   {"llama3", RotaryScalingKind::kLlama3},
                                                                   {"yarn", RotaryScalingKind::kYarn}};
constexpr std::pair<const char*, QueryKeyNorm> kQueryKeyNorms[] = {
    {"none", QueryKeyNorm::kNone}, {"head", QueryKeyNorm::kHead}, {"full", QueryKeyNorm::kFull}};
constexpr std::pair<const char*, ResidualForm> kResiduals[] = {{"sequential", ResidualForm::kSequential},
                                                               {"parallel", ResidualForm::kParallel},
                                                               {"shared-norm", ResidualForm::kSharedNorm}};
constexpr std::pair<const char*, GptConfig::Names> kNames[] = {{"gpt2", GptConfig::Names::kGpt2},
                                                               {"llama", GptConfig::Names::kLlama}};
constexpr std::pair<const char*, TransformerConfig::Memory> kMemories[] = {
    {"last", TransformerConfig::Memory::kLast}, {"same-layer", TransformerConfig::Memory::kSameLayer}};

constexpr double kMost = 1e6;  // of a width or a number of positions

Hyperparameter Size(const char* flag, const char* help, int64_t* value, double high, double low = 1,
                    const char* needs = "") {
  return {flag, help, value, {.low = low, .high = high, .needs = needs}};
}

// `value`: a double, or an optional one.
template <class Value>
Hyperparameter Probability(const char* flag, const char* help, Value* value) {
  return {flag, help, value, {.low = 0, .high = 0.99, .may_change = true}};
}

// Returns the shortest decimal number that is `value` when it is read.
std::string Decimal(double value) {
  for (int digits = 1; digits < 17; ++digits) {
    if (std::string text = absl::StrFormat("%.*g", digits, value); std::stod(text) == value) return text;
  }
  return absl::StrFormat("%.17g", value);
}

// Returns a row for one field of the attention patterns: a number for all layers, or a list that layers repeat.
template <class T>
Hyperparameter PatternRow(const char* flag, const char* help, T AttentionPattern::*field,
                          std::vector<AttentionPattern>* patterns, const char* needs = "") {
  constexpr bool kWhole = !std::is_same_v<T, double>;  // a bool is 0 or 1
  constexpr double kHigh = std::is_same_v<T, bool> ? 1 : 1e15;
  const T usual = AttentionPattern().*field;
  const double low = std::is_same_v<T, bool> ? 0 : static_cast<double>(usual);
  const auto get = [=]() -> std::string {
    std::vector<double> values;
    for (const AttentionPattern& each : *patterns) values.push_back(static_cast<double>(each.*field));
    if (values.empty()) values.push_back(static_cast<double>(usual));
    size_t period = 1;
    while (values.size() % period != 0 ||
           !std::equal(values.begin() + static_cast<std::ptrdiff_t>(period), values.end(), values.begin())) {
      ++period;
    }
    values.resize(period);
    return absl::StrJoin(values, ",", [](std::string* out, double value) { absl::StrAppend(out, Decimal(value)); });
  };
  const auto set = [=](absl::string_view text) -> absl::Status {
    std::vector<double> values;
    for (const absl::string_view word : absl::StrSplit(text, ',')) {
      if (double value = 0;
          ParseDecimal(word, &value) && value >= low && value <= kHigh && (!kWhole || value == std::floor(value))) {
        values.push_back(value);
      } else {
        return InvalidArgument("'", word, "' is not a ", kWhole ? "whole " : "", "number of at least ", low,
                               kHigh == 1 ? " and at most 1; wanted"
                                          : "; wanted one for all layers, or a list such as 8,0 that layers repeat");
      }
    }
    constexpr size_t kMaxPeriod = 4096;
    std::vector<AttentionPattern> old = *patterns;
    if (old.empty()) old.emplace_back();
    const size_t size = std::lcm(old.size(), values.size());
    if (size > kMaxPeriod) return InvalidArgument("the patterns repeat after ", size, " layers only");
    patterns->resize(size);
    for (size_t i = 0; i < size; ++i) {
      (*patterns)[i] = old[i % old.size()];
      (*patterns)[i].*field = static_cast<T>(values[i % values.size()]);
    }
    if (std::all_of(patterns->begin(), patterns->end(),
                    [](const AttentionPattern& each) { return each == AttentionPattern(); })) {
      patterns->clear();
    }
    return absl::OkStatus();
  };
  return {flag, help, Hyperparameter::Text{get, set}, {.needs = needs, .type = "N[,N...]"}};
}

// Names of initializers with the number that may follow them: a standard deviation, a bound or a gain.
struct InitializerName {
  const char* name;
  float number;  // if none is given
  bool takes_number;
  Initializer (*make)(float number);
};
constexpr InitializerName kInitializers[] = {
    {"normal", 0.02f, true, [](float deviation) { return Gaussian(deviation); }},
    {"truncated-normal", 0.02f, true, [](float deviation) { return TruncatedGaussian(deviation); }},
    {"uniform", 0.02f, true, [](float bound) { return Uniform(-bound, bound); }},
    {"xavier-normal", 1, true, [](float gain) { return XavierGaussian(gain); }},
    {"xavier-uniform", 1, true, [](float gain) { return XavierUniform(gain); }},
    {"he-normal", 1, false, [](float) { return HeGaussian(); }},
    {"he-uniform", 1, false, [](float) { return HeUniform(); }},
    {"lecun-normal", 1, false, [](float) { return LeCunGaussian(); }},
    {"lecun-uniform", 1, false, [](float) { return LeCunUniform(); }},
    {"orthogonal", 1, true, [](float gain) { return Orthogonal(gain); }},
};

std::string InitializerText(const std::optional<Initializer>& initializer) {
  if (!initializer) return "default";
  for (const InitializerName& each : kInitializers) {
    const bool has_deviation =
        initializer->kind == Initializer::Kind::kGaussian || initializer->kind == Initializer::Kind::kTruncated;
    const bool has_bound = initializer->kind == Initializer::Kind::kUniform;
    const float number = has_deviation || has_bound ? initializer->b : initializer->a;
    if (each.make(each.takes_number ? number : each.number) != *initializer) continue;
    return each.takes_number ? absl::StrCat(each.name, ":", number) : each.name;
  }
  return "default";
}

absl::Status SetInitializer(absl::string_view text, std::optional<Initializer>* initializer) {
  if (text == "default") return initializer->reset(), absl::OkStatus();
  const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(text, absl::MaxSplits(':', 1));
  std::vector<std::string> names = {"default"};
  for (const InitializerName& each : kInitializers) {
    names.push_back(each.name);
    if (parts.first != each.name) continue;
    float number = each.number;
    const bool given = parts.first.size() < text.size();
    const bool valid = !given || (each.takes_number && ParseDecimal(parts.second, &number) && number > 0);
    if (!valid) {
      return InvalidArgument("'", parts.second, "' can't follow ", each.name, "; wanted ",
                             each.takes_number ? "a number above 0" : "nothing");
    }
    *initializer = each.make(number);
    return absl::OkStatus();
  }
  return InvalidArgument("'", text, "' is not one of ", absl::StrJoin(names, ", "), DidYouMean(parts.first, names));
}

Hyperparameter InitializerRow(std::optional<Initializer>* initializer) {
  return {"initializer",
          "distribution of the initial weights of the blocks' linear layers: default (that of the model's paper), "
          "normal:DEVIATION, truncated-normal:DEVIATION, uniform:BOUND, xavier-normal:GAIN, xavier-uniform:GAIN, "
          "he-normal, he-uniform, lecun-normal, lecun-uniform or orthogonal:GAIN",
          Hyperparameter::Text{[initializer] { return InitializerText(*initializer); },
                               [initializer](absl::string_view text) { return SetInitializer(text, initializer); }},
          {.may_change = true, .type = "NAME[:X]"}};
}

constexpr std::pair<const char*, bool Ablation::*> kParts[] = {{"residual", &Ablation::residual},
                                                               {"norm", &Ablation::norm},
                                                               {"feed-forward", &Ablation::feed_forward},
                                                               {"value", &Ablation::value},
                                                               {"query-is-key", &Ablation::query_is_key}};

absl::Status SetPart(absl::string_view word, Ablation* ablation) {
  std::vector<std::string> names;
  for (const auto& [name, part] : kParts) {
    if (word == name) return ablation->*part = true, absl::OkStatus();
    names.push_back(name);
  }
  return InvalidArgument("'", word, "' is not one of ", absl::StrJoin(names, ", "), DidYouMean(word, names),
                         "; wanted none, or a list of them separated by commas");
}

Hyperparameter AblationRow(Ablation* ablation) {
  return {"ablate",
          "for study only: parts that blocks leave out: none, or a list of residual, norm, feed-forward, value and "
          "query-is-key (one layer for queries and keys)",
          Hyperparameter::Text{[ablation] { return ToText(*ablation); },
                               [ablation](absl::string_view text) -> absl::Status {
                                 WEFT_ASSIGN_OR_RETURN(*ablation, AblationFromText(text));
                                 return absl::OkStatus();
                               }},
          {.type = "PART[,PART...]"}};
}

Hyperparameters AttentionRows(AttentionVariant* attention) {
  AttentionVariant& a = *attention;
  return {
      Size("key-value-heads",
           "number of heads of keys and values; all serve equally many query heads; 0: the number of query heads",
           &a.key_value_heads, kMost, 0),
      Size("query-width", "width of a head's queries; 0: that of its keys", &a.query_width, kMost, 0),
      Size("key-width", "width of a head's keys; 0: query-width, or else width / heads", &a.key_width, kMost, 0),
      Size("value-width", "width of a head's values; 0: key-width or, with --head-merge=average, width", &a.value_width,
           kMost, 0),
      ChoiceRow<ScoreFunction>("score",
                               "function that compares a query with a key: their scaled product, or a small network "
                               "(Bahdanau et al., 2015)",
                               kScoreNames, &a.score),
      Size("score-width", "width of the hidden layer of --score=additive; 0: key-width", &a.score_width, kMost, 0,
           "score=additive"),
      ChoiceRow<HeadMerge>("head-merge",
                           "how the outputs of the heads are combined: by a linear layer, or as their mean",
                           kMergeNames, &a.merge),
      PatternRow("window",
                 "a token sees the tokens less than this number of positions away; 0: all; a list, such as 8,0, is "
                 "repeated over the layers",
                 &AttentionPattern::window, &a.patterns),
      PatternRow("stride",
                 "a token also sees each token whose distance is a multiple of this number; 0: none; may be a list",
                 &AttentionPattern::stride, &a.patterns),
      PatternRow(
          "dilation",
          "a token sees every token of the window whose distance is a multiple of this number, and the window is this "
          "many times as long; may be a list",
          &AttentionPattern::dilation, &a.patterns),
      ChoiceRow<DistanceBias>("distance-bias",
                              "number that is added to a score by distance: none, ALiBi's slopes, or learnt numbers "
                              "for buckets of distances as in T5",
                              kBiases, &a.distance_bias),
      Size("buckets", "number of buckets of --distance-bias=buckets", &a.buckets, kMost, 4, "distance-bias=buckets"),
      Size("max-distance", "distance from which on all tokens share the last bucket of --distance-bias=buckets",
           &a.max_distance, kMost, 4, "distance-bias=buckets"),
      {"soft-cap",
       "bound C of attention scores, which become C · tanh(score / C); 0: no bound",
       &a.soft_cap,
       {.low = 0}},
      {"score-scale",
       "factor of the products of queries and keys; 0: 1 divided by the root of key-width",
       &a.score_scale,
       {.low = 0}},
      ChoiceRow<QueryKeyNorm>("query-key-norm",
                              "norm of queries and keys before rotary positions: none, over each head's features, or "
                              "over the features of all heads",
                              kQueryKeyNorms, &a.query_key_norm),
      {"projection-bias", "the layers of queries, keys and values have biases; default: bias", &a.projection_bias},
      {"output-bias", "the output layer of attention has a bias; default: bias", &a.output_bias},
      ChoiceRow<std::optional<RotaryLayout>>(
          "rotary", "rotary positions, which turn pairs of features: i and i + half (Llama), or 2i and 2i + 1", kRotary,
          &a.rotary),
      {"rotary-base",
       "base of the angles of rotary positions",
       &a.rotary_base,
       {.low = 1e-30, .needs = "rotary", .type = "X>0"}},
      Size("rotary-width", "number of features of a head, the first ones, that rotary positions turn; 0: all",
           &a.rotary_width, kMost, 0, "rotary"),
      PatternRow("rotary-layers", "1: a layer has rotary positions, 0: it has none; may be a list",
                 &AttentionPattern::rotary, &a.patterns, "rotary"),
      PatternRow("layer-rotary-base", "base of a layer's own, unscaled angles; 0: --rotary-base; may be a list",
                 &AttentionPattern::rotary_base, &a.patterns, "rotary"),
      ChoiceRow<RotaryScalingKind>("rotary-scaling",
                                   "how rotary positions are stretched to a longer context: all angles are divided, or "
                                   "only slow ones (Llama 3, YaRN)",
                                   kScalings, &a.rotary_scaling.kind, {.needs = "rotary"}),
      {"rotary-factor",
       "divisor of angles in --rotary-scaling",
       &a.rotary_scaling.factor,
       {.low = 1e-30, .needs = "rotary", .type = "X>0"}},
      Size("rotary-context", "number of positions of the training before --rotary-scaling=llama3 or yarn",
           &a.rotary_scaling.context, kMost, 1, "rotary"),
      {"rotary-slow",
       "angles that turn at most this number of times in rotary-context are divided",
       &a.rotary_scaling.slow,
       {.low = 1e-30, .needs = "rotary", .type = "X>0"}},
      {"rotary-fast",
       "angles that turn at least this number of times in rotary-context stay; 0: 4 for llama3, 32 for yarn",
       &a.rotary_scaling.fast,
       {.low = 0, .needs = "rotary"}},
      {"rotary-gain",
       "factor of the rotated features in --rotary-scaling=yarn; 0: that of the paper",
       &a.rotary_scaling.gain,
       {.low = 0, .needs = "rotary"}},
  };
}

// Appends the rows of the blocks that all families have.
template <class Config>
void AppendBlockRows(Config* config, Hyperparameters* table) {
  Append(
      {
          ChoiceRow<Activation>("activation", "activation of the feed-forward layers", kActivations,
                                &config->activation),
          {"gated", "feed-forward layers have a gate; with --activation=silu they are Llama's SwiGLU", &config->gated},
          {"pre-norm", "normalise before each layer of a block, not after it", &config->pre_norm},
          ChoiceRow<NormKind>(
              "norm", "kind of normalisation; batch-norm is for study only, because padding changes its statistics",
              kNorms, &config->norm.kind),
          {"norm-epsilon",
           "number that is added to the variance before the square root",
           &config->norm.epsilon,
           {.low = 1e-30, .high = 1, .type = "X>0"}},
          {"norm-bias", "norms of --norm=layer-norm have biases", &config->norm.bias},
          {"norm-plus-one", "the gain of a norm is 1 + its weight", &config->norm.plus_one},
          {"bias", "linear layers of blocks have biases", &config->bias},
          ChoiceRow<PositionKind>(
              "positions",
              "position embeddings, which are added to the embeddings of tokens; auto: none with --rotary or "
              "--distance-bias, and otherwise those of the model's paper",
              kPositions, &config->positions),
          InitializerRow(&config->initializer),
      },
      table);
  Append(AttentionRows(&config->attention), table);
  table->push_back(AblationRow(&config->ablation));
}

}  // namespace

std::string ToText(const Ablation& ablation) {
  std::vector<absl::string_view> names;
  for (const auto& [name, part] : kParts) {
    if (ablation.*part) names.push_back(name);
  }
  return names.empty() ? "none" : absl::StrJoin(names, ",");
}

absl::StatusOr<Ablation> AblationFromText(absl::string_view text) {
  Ablation ablation;
  if (text == "none") return ablation;
  const std::string hyphens = absl::StrReplaceAll(text, {{"_", "-"}});
  for (const absl::string_view word : absl::StrSplit(hyphens, ',')) {
    WEFT_RETURN_IF_ERROR(SetPart(absl::StripAsciiWhitespace(word), &ablation));
  }
  return ablation;
}

Hyperparameters ModelRows(GptConfig* config) {
  Hyperparameters table = {
      Size("context", "maximum number of tokens that a prediction sees", &config->context, kMost),
      Size("layers", "number of decoder blocks", &config->layers, 1e4),
      Size("heads", "attention heads of each block", &config->heads, 1e4),
      Size("width", "width of the model, a multiple of heads", &config->width, kMost),
      Size("feed-forward", "width of the feed-forward layers; 0: 4 times the model's width", &config->feed_forward, 1e7,
           0),
      Probability("dropout", "probability of dropout", &config->dropout),
      Probability("attention-dropout", "probability of dropout of attention weights; default: dropout",
                  &config->attention_dropout),
      Probability("embedding-dropout", "probability of dropout of embeddings; default: dropout",
                  &config->embedding_dropout),
      Probability("activation-dropout", "probability of dropout between the feed-forward layers",
                  &config->activation_dropout),
      {"tied-head", "use the token table as the weight of the output layer", &config->tied_head},
      {"head-bias", "the output layer has a bias", &config->head_bias},
      {"result-norm",
       "normalise each layer's result before it is added; with --pre-norm=false, these are the only norms of blocks",
       &config->result_norm},
      ChoiceRow<ResidualForm>("residual",
                              "attention and feed-forward layers one after the other, or both from the same x, with a "
                              "norm each or one norm for both",
                              kResiduals, &config->residual),
      {"embedding-scale", "factor of the token embeddings", &config->embedding_scale, {.low = 1e-30, .type = "X>0"}},
      {"residual-scale", "factor of each layer's result", &config->residual_scale, {.low = 1e-30, .type = "X>0"}},
      {"logits-scale", "factor of the logits", &config->logits_scale, {.low = 1e-30, .type = "X>0"}},
      {"logits-cap",
       "bound C of the logits, which become C · tanh(logit / C); 0: no bound",
       &config->logits_cap,
       {.low = 0}},
      ChoiceRow<GptConfig::Names>("layer-names",
                                  "names of the weights; llama: those of Llama, which export of the modern form needs",
                                  kNames, &config->names),
  };
  AppendBlockRows(config, &table);
  return table;
}

Hyperparameters ModelRows(BertConfig* config) {
  Hyperparameters table = {
      Size("context", "maximum number of tokens in an input, special tokens included", &config->context, kMost),
      Size("layers", "encoder blocks", &config->layers, 1e4),
      Size("heads", "attention heads of a block", &config->heads, 1e4),
      Size("width", "width of the model, a multiple of heads", &config->width, kMost),
      Size("feed-forward", "width of the feed-forward layers", &config->feed_forward, 1e7),
      Size("segments", "number of different segments of an input, such as sentence 1 and 2", &config->segments, 1e4),
      Probability("dropout", "probability of dropout", &config->dropout),
      Probability("attention-dropout", "probability of dropout of attention weights; default: dropout",
                  &config->attention_dropout),
      Probability("activation-dropout", "probability of dropout between the feed-forward layers",
                  &config->activation_dropout),
      Probability("classifier-dropout", "probability of dropout before a classifier; default: dropout",
                  &config->classifier_dropout),
  };
  for (Hyperparameter& row : table) row.rules.zero_keeps = row.rules.low >= 1;  // 0: as in the weights of init
  AppendBlockRows(config, &table);
  return table;
}

Hyperparameters ModelRows(TransformerConfig* config) {
  Hyperparameters table = {
      Size("context", "maximum number of tokens in a sentence, its end token included", &config->context, kMost, 2),
      Size("encoder-layers", "blocks of the encoder", &config->encoder_layers, 1e4),
      Size("decoder-layers", "blocks of the decoder", &config->decoder_layers, 1e4),
      Size("heads", "attention heads of a block", &config->heads, 1e4),
      Size("width", "width of the model, a multiple of heads", &config->width, kMost),
      Size("feed-forward", "width of the feed-forward layers", &config->feed_forward, 1e7),
      Probability("dropout", "probability of dropout", &config->dropout),
      Probability("attention-dropout", "probability of dropout of attention weights", &config->attention_dropout),
      Probability("activation-dropout", "probability of dropout between the feed-forward layers",
                  &config->activation_dropout),
      {"label-smoothing",
       "fraction of a target's probability that is spread over all tokens",
       &config->label_smoothing,
       {.low = 0, .high = 1, .may_change = true}},
      ChoiceRow<TransformerConfig::Memory>(
          "memory", "the encoder block that a decoder block attends to: the last, or the block with the same number",
          kMemories, &config->memory),
      {"shared-embeddings", "one embedding table for source, target and output layer", &config->shared_embeddings},
      {"scale-embeddings", "multiply embeddings by the root of width", &config->scale_embeddings},
      {"tied-head", "use the target's token table as the weight of the output layer", &config->tied_head},
      {"head-bias", "the output layer has a bias", &config->head_bias},
      Size("first-position", "number of the first position of sinusoids", &config->first_position, kMost, 0),
  };
  AppendBlockRows(config, &table);
  return table;
}

Hyperparameters ModelRows(VitConfig* config) {
  Hyperparameters table = {
      Size("patch-size", "side of a patch, in pixels", &config->patch_size, 1e4),
      Size("layers", "encoder blocks", &config->layers, 1e4),
      Size("heads", "attention heads of a block", &config->heads, 1e4),
      Size("width", "width of the model, a multiple of heads", &config->width, kMost),
      Size("feed-forward", "width of the feed-forward layers; 0: 4 times width", &config->feed_forward, 1e7, 0),
      Probability("dropout", "probability of dropout", &config->dropout),
      Probability("attention-dropout", "probability of dropout of attention weights; default: 0",
                  &config->attention_dropout),
      Probability("activation-dropout", "probability of dropout between the feed-forward layers; default: dropout",
                  &config->activation_dropout),
  };
  AppendBlockRows(config, &table);
  return table;
}

}  // namespace weft
