// Block records one block of a Transformer: self-attention, optionally attention to an encoder's output, and a
// feed-forward network. Each of them has a residual connection and a norm.
//
//   x = Block("h.0", x, {.attention = {.heads = 12, .causal = true}});   // [B, T, C]
//
// The configurations of all model families describe one stack of blocks by fields of the same names. WithStack,
// ValidateStack and others read these fields from a configuration of any family.
//
//   const BlockOptions names = {.attention = {.packed = nullptr, .query = "self.query"}};   // the family's
//   x = Block("encoder.layer.3", x, WithStack(names, config, /*layer=*/3, Gaussian(0.02f)));
#ifndef WEFT_MODELS_BLOCK_H_
#define WEFT_MODELS_BLOCK_H_

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "weft/base/status.h"
#include "weft/models/attention.h"
#include "weft/models/layers.h"
#include "weft/models/validate.h"
#include "weft/ops/ops.h"

namespace weft {

// How attention and the feed-forward layer of a block are connected. kParallel and kSharedNorm: both read x, and their
// results are added to it (Wang and Komatsuzaki, 2021). kSharedNorm has one norm for both, attention_norm.
enum class ResidualForm : uint8_t { kSequential, kParallel, kSharedNorm };

struct BlockOptions {
  AttentionOptions attention;  // its ablation also leaves parts of the block out; cross_attention has its own
  std::optional<AttentionOptions> cross_attention;
  FeedForwardOptions feed_forward;
  MixtureOptions mixture;
  NormOptions norm;
  bool pre_norm = true, result_norm = false;
  ResidualForm residual = ResidualForm::kSequential;  // others need pre_norm, and exclude cross_attention
  double residual_scale = 1;                          // factor of each layer's result

  // Names of the layers; the defaults are GPT-2's. If a norm's name is null, the block lacks this norm.
  const char *attention_name = "attn", *attention_norm = "ln_1";
  const char *cross_name = "crossattention", *cross_norm = "ln_cross_attn", *cross_result_norm = "ln_cross_attn_result";
  const char *feed_forward_name = "mlp", *feed_forward_norm = "ln_2";
  const char *attention_result_norm = "ln_1_result", *feed_forward_result_norm = "ln_2_result";  // of result_norm
};

struct BlockInputs {
  AttentionInputs attention;
  AttentionInputs cross;                   // set its memory for cross-attention
  const AttentionCache* memory = nullptr;  // not null: cross-attention reads what StoreMemory wrote here, not `cross`
};

// Returns y [B, T, C] of x [B, T, C]:
//   pre_norm:  h = x + attention(norm(x)); y = h + feed_forward(norm(h))  (Radford et al., 2019)
//   otherwise: h = norm(x + attention(x)); y = norm(h + feed_forward(h))  (Vaswani et al., 2017)
// With result_norm, the layers' results are normalised before they are added, and there are no norms of sums:
//   h = x + norm(attention(norm(x))) (Gemma Team, 2024) or, without pre_norm, h = x + norm(attention(x)) (OLMo Team,
//   2024)
// If options.cross_attention is set, cross-attention comes between self-attention and feed_forward, in the same form.
Var Block(absl::string_view name, Var x, const BlockOptions& options, const BlockInputs& inputs = {});

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
    part->output_initializer = config.zero_output ? Zeros() : config.initializer.value_or(usual_output.value_or(usual));
  };
  AttentionOptions& attention = block.attention;
  set(&attention);
  attention.heads = config.heads;
  attention.variant = config.attention;
  attention.layer = layer;
  attention.norm = config.norm;
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
  if constexpr (requires { config.result_norm; }) {
    block.result_norm = config.result_norm;
    block.residual = config.residual;
    block.residual_scale = config.residual_scale;
    block.mixture = config.mixture;
  }
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

#endif  // WEFT_MODELS_BLOCK_H_
