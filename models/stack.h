// What the configurations of all model families share: fields of the same names describe one stack of blocks. These
// functions read the fields from a configuration of any family.
//
//   const BlockOptions names = {.attention = {.packed = nullptr, .query = "self.query"}};   // the family's
//   x = Block("encoder.layer.3", x, WithStack(names, config, /*layer=*/3, Gaussian(0.02f)));
#ifndef WEFT_MODELS_STACK_H_
#define WEFT_MODELS_STACK_H_

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <type_traits>

#include "absl/status/status.h"
#include "weft/base/status.h"
#include "weft/models/attention.h"
#include "weft/models/block.h"
#include "weft/models/validate.h"

namespace weft {

struct VitConfig;

// Returns `config`, in which unset probabilities of dropout have their defaults: `dropout`, except for ViT's attention.
template <class Config>
Config WithDropout(Config config) {
  const auto fill = [](auto& probability, double usual) {
    if constexpr (!std::is_same_v<decltype(probability), double&>) probability = probability.value_or(usual);
  };
  fill(config.attention_dropout, std::is_same_v<Config, VitConfig> ? 0 : config.dropout);
  fill(config.activation_dropout, config.dropout);
  if constexpr (requires { config.embedding_dropout; }) fill(config.embedding_dropout, config.dropout);
  if constexpr (requires { config.classifier_dropout; }) fill(config.classifier_dropout, config.dropout);
  return config;
}

// Returns `config` with the default, 4·C, in place of a feed_forward of 0.
template <class Config>
Config WithFeedForward(Config config) {
  if (config.feed_forward == 0) config.feed_forward = 4 * config.width;
  return config;
}

// Returns the options of block `layer`. `block` has the family's names and causal, and all else comes from `config`.
// `usual`: the initializer of linear layers that `config` does not name. `usual_output`: that of the layers whose
// results are added to x; unset: `usual`.
template <class Config>
BlockOptions WithStack(BlockOptions block, const Config& config, int64_t layer, const Initializer& usual,
                       const std::optional<Initializer>& usual_output = {}) {
  const Config full = WithDropout(config);
  const auto set = [&](auto* part) {
    part->bias = config.bias;
    part->initializer = config.initializer.value_or(usual);
    part->output_initializer = config.initializer.value_or(usual_output.value_or(usual));
  };
  AttentionOptions& attention = block.attention;
  set(&attention);
  attention.heads = config.heads;
  attention.variant = config.attention;
  attention.layer = layer;
  attention.dropout = *std::optional<double>(full.attention_dropout);
  attention.residual_dropout = config.dropout;
  attention.ablation = config.ablation;
  FeedForwardOptions& feed_forward = block.feed_forward;
  set(&feed_forward);
  feed_forward.width = config.feed_forward;
  feed_forward.activation = config.activation;
  feed_forward.dropout = config.dropout;
  feed_forward.hidden_dropout = *std::optional<double>(full.activation_dropout);
  if (!config.gated) feed_forward.gate = nullptr;
  block.norm = config.norm;
  block.pre_norm = config.pre_norm;
  return block;
}

// Returns InvalidArgument if a field that all families have is out of its range, or one of `sizes`, the family's own.
// `context`: number of positions. `positions`: as Resolve gives them.
template <class Config>
absl::Status ValidateStack(const Config& config, std::initializer_list<SizeCheck> sizes, int64_t context,
                           PositionKind positions) {
  WEFT_RETURN_IF_ERROR(CheckSizes(sizes));
  WEFT_RETURN_IF_ERROR(CheckSizes({{"feed_forward", config.feed_forward, 0, 16 * kMaxFeatures}}));
  WEFT_RETURN_IF_ERROR(Validate(config.attention, config.ablation, config.heads, config.width, context));
  const bool sinusoids = positions == PositionKind::kSinusoidal || positions == PositionKind::kSinusoidalHalves;
  if (sinusoids && config.width % 2 != 0) {
    return InvalidArgument("width ", config.width, " is odd, but sinusoids come in pairs");
  }
  WEFT_RETURN_IF_ERROR(CheckPositive("norm's epsilon", config.norm.epsilon));
  WEFT_RETURN_IF_ERROR(CheckDropout(config.dropout));
  WEFT_RETURN_IF_ERROR(CheckDropout(config.attention_dropout, "attention_dropout"));
  WEFT_RETURN_IF_ERROR(CheckDropout(config.activation_dropout, "activation_dropout"));
  if constexpr (requires { config.dtype; }) return CheckDType(config.dtype);
  return absl::OkStatus();
}

}  // namespace weft

#endif  // WEFT_MODELS_STACK_H_
