// A GemmShape describes a matrix product: C = A' B' or C += A' B', where A' is A or Aᵀ and B' is B or Bᵀ.
#ifndef WEFT_OPS_KERNELS_GEMM_SHAPE_H_
#define WEFT_OPS_KERNELS_GEMM_SHAPE_H_

#include <cstdint>

#include "weft/core/dtype.h"

namespace weft {

struct GemmShape {
  int64_t batch = 1;
  int64_t rows = 0, cols = 0, inner = 0;                               // C is [rows, cols]; sums have `inner` terms
  int64_t a_stride = 0, b_stride = 0, c_stride = 0;                    // elements between stored rows
  int64_t a_batch_stride = 0, b_batch_stride = 0, c_batch_stride = 0;  // elements between matrices; 0: one for all
  bool transpose_a = false, transpose_b = false;  // A is stored as [inner, rows], B as [cols, inner]
  bool packed_b = false;                          // B is bf16, in panels (kernels/pack.h)
  bool accumulate = false;                        // C += A' B'
  DType in = kF32, out = kF32;                    // dtypes of A and B, and of C; f32 operands give f32

  friend bool operator==(const GemmShape&, const GemmShape&) = default;
};

}  // namespace weft

#endif  // WEFT_OPS_KERNELS_GEMM_SHAPE_H_
