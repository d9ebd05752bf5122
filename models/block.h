// Block records one block of a Transformer: self-attention, optionally attention to an encoder's output, and a
// feed-forward network. Each of them has a residual connection and a norm.
//
//   x = Block("h.0", x, {.attention = {.heads = 12, .causal = true}});   // [B, T, C]
#ifndef WEFT_MODELS_BLOCK_H_
#define WEFT_MODELS_BLOCK_H_

#include <optional>

#include "weft/models/attention.h"
#include "weft/models/layers.h"

namespace weft {

struct BlockOptions {
  AttentionOptions attention;  // its ablation is that of the whole block, except for cross-attention
  std::optional<AttentionOptions> cross_attention;
  FeedForwardOptions feed_forward;
  NormOptions norm;
  bool pre_norm = true;

  // Names of the layers; the defaults are GPT-2's.
  const char *attention_name = "attn", *attention_norm = "ln_1";
  const char *cross_name = "crossattention", *cross_norm = "ln_cross_attn";
  const char *feed_forward_name = "mlp", *feed_forward_norm = "ln_2";
};

struct BlockInputs {
  AttentionInputs attention;
  AttentionInputs cross;                   // set its memory for cross-attention
  const AttentionCache* memory = nullptr;  // not null: cross-attention reads what StoreMemory wrote here, not `cross`
};

// Returns y [B, T, C] of x [B, T, C]:
//   pre_norm:  h = x + attention(norm(x)); y = h + feed_forward(norm(h))  (Radford et al., 2019)
//   otherwise: h = norm(x + attention(x)); y = norm(h + feed_forward(h))  (Vaswani et al., 2017)
// If options.cross_attention is set, cross-attention comes between self-attention and feed_forward, in the same form.
Var Block(absl::string_view name, Var x, const BlockOptions& options, const BlockInputs& inputs = {});

// Like StoreMemory in attention.h, for the cross-attention of the block `name`. options.cross_attention must be set.
// `width`: C of the block's x.
VarList StoreMemory(absl::string_view name, Var memory, int64_t width, const BlockOptions& options,
                    const AttentionCache& cache);

}  // namespace weft

#endif  // WEFT_MODELS_BLOCK_H_
