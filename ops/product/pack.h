// Pack stores the right operand of a product in panels, and PackedMatMul multiplies by panels. Only the compiler's pass
// PackWeights records these ops.
#ifndef WEFT_OPS_PRODUCT_PACK_H_
#define WEFT_OPS_PRODUCT_PACK_H_

#include <cstdint>

#include "weft/core/op.h"

namespace weft {

// Packs f32 B [K, N], stored as [N, K] if `transposed`, into panels [panels, K, W] of `dtype`, f32 or bf16. A panel
// holds W columns (kernels/pack.h). In bf16, W is 64 and K is rounded up to a multiple of 32. There is no gradient.
Var Pack(Var b, bool transposed, DType dtype);
// Returns y[..., j] = Σ_k a[..., k] · B[k, j] for j < cols, where `panels` hold B in a's dtype. If `f32_output`, the
// result of bf16 operands is f32.
Var PackedMatMul(Var a, Var panels, int64_t cols, bool f32_output = false);

}  // namespace weft

#endif  // WEFT_OPS_PRODUCT_PACK_H_
