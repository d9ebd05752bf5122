#include "weft/models/attention.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "weft/core/status.h"
#include "weft/models/layers.h"

namespace weft {

Var MultiHeadAttention(absl::string_view name, Var x, const AttentionOptions& options) {
  const Scope scope(x.tape, name);
  const int64_t batch = x.dim(0), length = x.dim(1), width = x.dim(2), heads = options.heads;
  if (x.shape().rank() != 3 || heads < 1 || width % heads != 0) {
    x.tape->Fail(
        ShapeError("attention", absl::StrCat("x must be [B, T, C] with C a multiple of heads ", heads), {x.type()}));
    return x;
  }
  const int64_t head_width = width / heads;
  const Var packed = Linear("c_attn", x, 3 * width, {.bias = options.bias});  // [B, T, 3C]
  const auto by_head = [&](Var v) {                                           // [B, T, C] → [B, H, T, D]
    return Permute(Reshape(v, {batch, length, heads, head_width}), {0, 2, 1, 3});
  };
  const VarList parts = Split(packed, -1, 3);
  const Var query = by_head(parts[0]), key = by_head(parts[1]), value = by_head(parts[2]);

  Var scores = MatMul(query, key, {.transpose_b = true});  // [B, H, T, T]
  scores = Scale(scores, 1 / std::sqrt(static_cast<double>(head_width)));
  if (options.causal) scores = CausalMask(scores, -std::numeric_limits<double>::infinity());
  const Var weights = Dropout(Softmax(scores), options.dropout);
  const Var mixed = Permute(MatMul(weights, value), {0, 2, 1, 3});  // [B, T, H, D]
  const Var y = Linear("c_proj", Reshape(mixed, x.shape()), width,
                       {.bias = options.bias, .initializer = options.output_initializer});
  return Dropout(y, options.residual_dropout);
}

}  // namespace weft
