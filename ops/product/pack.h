// The ops of packed products, for the pass that records them.
#ifndef WEFT_OPS_PRODUCT_PACK_H_
#define WEFT_OPS_PRODUCT_PACK_H_

#include "weft/core/op.h"
#include "weft/ops/kernels/pack.h"

namespace weft {

PanelShape Panels(int64_t inner, int64_t cols,
                  DType dtype);  // of B [inner, cols]; in f32 one is as wide as the least tile

// B [K, N] in f32, or [N, K] where it is stored transposed, as panels of f32 or bf16 (kernels/pack.h): [panels, K, W]
// of W columns each; in bf16 W is 64 and K is filled up to a multiple of 32. There is no gradient.
Var Pack(Var b, bool transposed, DType dtype);
// y[..., j] = Σ_k a[..., k] · B[k, j] for j < cols, with B in panels of a's dtype. f32_output: of bf16.
Var PackedMatMul(Var a, Var panels, int64_t cols, bool f32_output = false);
bool PacksBF16();  // whether the CPU's products of bf16 gain by it

}  // namespace weft

#endif  // WEFT_OPS_PRODUCT_PACK_H_
