// One block of a decoder-only Transformer: attention and a feed-forward network, each with a residual connection.
#ifndef WEFT_MODELS_DECODER_BLOCK_H_
#define WEFT_MODELS_DECODER_BLOCK_H_

#include "weft/models/attention.h"
#include "weft/models/layers.h"

namespace weft {

struct DecoderBlockOptions {
  AttentionOptions attention;
  FeedForwardOptions feed_forward;
  bool pre_norm = true;
};
// pre_norm:  h = x + attention(norm(x)); y = h + feed_forward(norm(h))  (Radford et al., 2019)
// post-norm: h = norm(x + attention(x)); y = norm(h + feed_forward(h))  (Vaswani et al., 2017)
// Parameters: ln_1, attn, ln_2, mlp. x, y: [B, T, C].
Var DecoderBlock(absl::string_view name, Var x, const DecoderBlockOptions& options);

}  // namespace weft

#endif  // WEFT_MODELS_DECODER_BLOCK_H_
