#include "weft/models/decoder_block.h"

namespace weft {

Var DecoderBlock(absl::string_view name, Var x, const DecoderBlockOptions& options) {
  const Scope scope(x.tape, name);
  if (options.pre_norm) {
    const Var h = ResidualAdd(x, MultiHeadAttention("attn", LayerNorm("ln_1", x), options.attention));
    return ResidualAdd(h, FeedForward("mlp", LayerNorm("ln_2", h), options.feed_forward));
  }
  const Var h = LayerNorm("ln_1", ResidualAdd(x, MultiHeadAttention("attn", x, options.attention)));
  return LayerNorm("ln_2", ResidualAdd(h, FeedForward("mlp", h, options.feed_forward)));
}

}  // namespace weft
