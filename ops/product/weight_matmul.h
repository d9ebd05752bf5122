// Declares weight_matmul, which the compiler records in place of products of few rows and of stored weights.
#ifndef WEFT_OPS_PRODUCT_WEIGHT_MATMUL_H_
#define WEFT_OPS_PRODUCT_WEIGHT_MATMUL_H_

#include <cstdint>

#include "weft/core/op.h"

namespace weft {

// With more rows than this, arithmetic takes longer than reading the weight, and packed_matmul is faster.
inline constexpr int64_t kFewRows = 48;

// Returns a wᵀ: f32 [..., cols] for a f32 [..., inner] and a weight w [cols, inner] in f32, bf16 or a block format. The
// op has no gradient.
Var WeightMatMul(Var a, Var w);
// Returns the rows `ids` of a weight in bf16 or a block format, in f32, as Embedding does.
Var WeightEmbedding(Var w, Var ids);

}  // namespace weft

#endif  // WEFT_OPS_PRODUCT_WEIGHT_MATMUL_H_
