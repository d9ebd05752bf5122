// One block of a Transformer: attention, in a decoder with an encoder also attention to it, and a feed-forward network,
// each with a residual connection.
#ifndef WEFT_MODELS_BLOCK_H_
#define WEFT_MODELS_BLOCK_H_

#include <optional>
#include <string>

#include "weft/models/attention.h"
#include "weft/models/layers.h"

namespace weft {

struct BlockOptions {
  AttentionOptions attention;
  std::optional<AttentionOptions> cross_attention;
  FeedForwardOptions feed_forward;
  NormOptions norm;
  bool pre_norm = true;

  // Names of the layers, as GPT-2's unless another is said.
  const char *attention_name = "attn", *attention_norm = "ln_1";
  const char *cross_name = "crossattention", *cross_norm = "ln_cross_attn";
  const char *feed_forward_name = "mlp", *feed_forward_norm = "ln_2";
};

struct BlockInputs {
  AttentionInputs attention;
  AttentionInputs cross;      // its memory, if the block has cross-attention
  std::string stored_memory;  // or the prefix under which StoreMemory put it, and its length S
  int64_t stored_length = 0;
};

// pre_norm:  h = x + attention(norm(x)); y = h + feed_forward(norm(h))  (Radford et al., 2019)
// post-norm: h = norm(x + attention(x)); y = norm(h + feed_forward(h))  (Vaswani et al., 2017)
// with cross-attention between the two, done likewise. x, y: [B, T, C].
Var Block(absl::string_view name, Var x, const BlockOptions& options, const BlockInputs& inputs = {});

// What StoreMemory does for the block's cross-attention; `width` is that of the block's x.
VarList StoreMemory(absl::string_view name, Var memory, int64_t width, const BlockOptions& options,
                    const std::string& prefix);

}  // namespace weft

#endif  // WEFT_MODELS_BLOCK_H_
