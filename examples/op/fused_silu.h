// FusedSilu computes SiLU, y = x · σ(x) (Elfwing et al., 2018), in one pass over memory.
#ifndef FUSED_SILU_H_
#define FUSED_SILU_H_

#include "weft/ops/ops.h"

namespace my_op {

extern const weft::OpDef kFusedSilu;
// Returns x · σ(x) for each element of x, f32 or f64, of any shape.
weft::Var FusedSilu(weft::Var x);

}  // namespace my_op

#endif  // FUSED_SILU_H_
