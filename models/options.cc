// Families share most rows. The functions below make these rows for the fields of any configuration.
#include "weft/models/options.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
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
                                                               {"relu2", Activation::kReluSquared},
                                                               {"silu", Activation::kSilu}};
constexpr std::pair<const char*, NormKind> kNorms[] = {
    {"layer-norm", NormKind::kLayerNorm}, {"rms-norm", NormKind::kRmsNorm}, {"batch-norm", NormKind::kBatchNorm}};
constexpr std::pair<const char*, PositionKind> kPositions[] = {{"auto", PositionKind::kAuto},
                                                               {"learned", PositionKind::kLearned},
                                                               {"sinusoidal", PositionKind::kSinusoidal},
                                                               {"sinusoidal-halves", PositionKind::kSinusoidalHalves},
                                                               {"none", PositionKind::kNone}};
constexpr std::pair<const char*, ResidualForm> kResiduals[] = {{"sequential", ResidualForm::kSequential},
                                                               {"parallel", ResidualForm::kParallel},
                                                               {"shared-norm", ResidualForm::kSharedNorm}};
constexpr std::pair<const char*, GptConfig::Names> kNames[] = {{"gpt2", GptConfig::Names::kGpt2},
                                                               {"llama", GptConfig::Names::kLlama}};
constexpr std::pair<const char*, TransformerConfig::Memory> kMemories[] = {
    {"last", TransformerConfig::Memory::kLast}, {"same-layer", TransformerConfig::Memory::kSameLayer}};

// `value`: a double, or an optional one.
template <class Value>
Hyperparameter Probability(const char* flag, const char* help, Value* value) {
  return {flag, help, value, {.low = 0, .high = 0.99, .may_change = true}};
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
          {"zero-output",
           "the last layer of attention and of the feed-forward network begins with zeros; with --pre-norm each block "
           "then begins as the identity",
           &config->zero_output,
           {.may_change = true}},
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
      Size("context", "maximum number of tokens that a prediction sees", &config->context, kMaxWidth),
      Size("layers", "number of decoder blocks", &config->layers, 1e4),
      Size("heads", "attention heads of each block", &config->heads, 1e4),
      Size("width", "width of the model, a multiple of heads", &config->width, kMaxWidth),
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
      Size("experts",
           "number of experts: feed-forward layers of a block, among which each token uses a few; 0: one layer for all "
           "tokens",
           &config->mixture.experts, 4096, 0),
      Size("experts-per-token", "number of experts that a token uses, those with the greatest weights",
           &config->mixture.per_token, 4096, 1, "experts"),
      AtLeast0("balance-loss",
               "factor of the loss that makes tokens use all experts equally often, which training adds",
               &config->balance_loss, "experts"),
      {"embedding-norm", "normalise the token embeddings", &config->embedding_norm},
      {"value-embeddings", "each block adds an embedding of the token to attention's value", &config->value_embeddings},
      {"skip-connections",
       "outputs of the first half of the blocks are added to inputs of the second half, the last one first, each "
       "with a learnt factor",
       &config->skip_connections},
      Size("first-position", "number of the first position of learned positions and sinusoids", &config->first_position,
           kMaxWidth, 0),
      {"result-norm",
       "normalise each layer's result before it is added; with --pre-norm=false, these are the only norms of blocks",
       &config->result_norm},
      ChoiceRow<ResidualForm>("residual",
                              "attention and feed-forward layers one after the other, or both from the same x, with a "
                              "norm each or one norm for both",
                              kResiduals, &config->residual),
      Above0("embedding-scale", "factor of the token embeddings", &config->embedding_scale),
      Above0("residual-scale", "factor of each layer's result", &config->residual_scale),
      Above0("logits-scale", "factor of the logits", &config->logits_scale),
      AtLeast0("logits-cap", "bound C of the logits, which become C · tanh(logit / C); 0: no bound",
               &config->logits_cap),
      ChoiceRow<GptConfig::Names>("layer-names",
                                  "names of the weights; llama: those of Llama, which export of the modern form needs",
                                  kNames, &config->names),
  };
  AppendBlockRows(config, &table);
  return table;
}

Hyperparameters ModelRows(BertConfig* config) {
  Hyperparameters table = {
      Size("context", "maximum number of tokens in an input, special tokens included", &config->context, kMaxWidth),
      Size("layers", "encoder blocks", &config->layers, 1e4),
      Size("heads", "attention heads of a block", &config->heads, 1e4),
      Size("width", "width of the model, a multiple of heads", &config->width, kMaxWidth),
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
      Size("context", "maximum number of tokens in a sentence, its end token included", &config->context, kMaxWidth, 2),
      Size("encoder-layers", "blocks of the encoder", &config->encoder_layers, 1e4),
      Size("decoder-layers", "blocks of the decoder", &config->decoder_layers, 1e4),
      Size("heads", "attention heads of a block", &config->heads, 1e4),
      Size("width", "width of the model, a multiple of heads", &config->width, kMaxWidth),
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
      Above0("logits-scale", "factor of the logits", &config->logits_scale),
      {"shared-distance-bias",
       "all blocks of a side have the first block's numbers of --distance-bias=buckets",
       &config->shared_distance_bias,
       {.needs = "distance-bias=buckets"}},
      {"embedding-norm", "normalise the sum of the embeddings of tokens and positions", &config->embedding_norm},
      Size("first-position", "number of the first position of learned positions and sinusoids", &config->first_position,
           kMaxWidth, 0),
  };
  AppendBlockRows(config, &table);
  return table;
}

Hyperparameters ModelRows(VitConfig* config) {
  Hyperparameters table = {
      Size("patch-size", "side of a patch, in pixels", &config->patch_size, 1e4),
      Size("layers", "encoder blocks", &config->layers, 1e4),
      Size("heads", "attention heads of a block", &config->heads, 1e4),
      Size("width", "width of the model, a multiple of heads", &config->width, kMaxWidth),
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
