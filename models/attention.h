// Multi-head attention, spelt out in elementary ops (Vaswani et al., "Attention is all you need", 2017, 3.2).
#ifndef WEFT_MODELS_ATTENTION_H_
#define WEFT_MODELS_ATTENTION_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "weft/ops/ops.h"

namespace weft {

struct AttentionOptions {
  int64_t heads = 1;
  bool causal = false;
  double dropout = 0;           // of the attention weights
  double residual_dropout = 0;  // of the result
  bool bias = true;
  Initializer output_initializer = Gaussian(0.02f);
};
// x [B, T, C] → "c_attn" [B, T, 3C] → softmax(q·kᵀ / √D)·v for each head → "c_proj" [B, T, C]. C must be a multiple of
// heads.
Var MultiHeadAttention(absl::string_view name, Var x, const AttentionOptions& options);

}  // namespace weft

#endif  // WEFT_MODELS_ATTENTION_H_
