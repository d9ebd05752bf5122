// OwnGemm multiplies f32 and bf16 matrices in f32, with Weft's own kernel for every instruction set. Gemm uses it where
// oneDNN has no fast kernel: for f32 on CPUs without AVX-512, and for bf16 on CPUs without bf16 products.
//
// The terms of a sum are added in blocks of at most 256 terms, and the blocks one after the other, so the bits of an
// element depend neither on the size of its tile nor on gaps between rows.
#ifndef WEFT_OPS_KERNELS_OWN_GEMM_H_
#define WEFT_OPS_KERNELS_OWN_GEMM_H_

#include <cstddef>
#include <cstdint>

#include "weft/core/dtype.h"

namespace weft {

// Describes a matrix product, or a batch of them: C = A' B' or C += A' B', where A' is A or Aᵀ and B' is B or Bᵀ.
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

size_t OwnGemmWorkspace(const GemmShape& shape);  // bytes
// Computes a product or a batch of products. All sizes are at least 1, and a C that is added to is f32. `workspace` has
// OwnGemmWorkspace(shape) bytes and is aligned to kAlignment.
void OwnGemm(const GemmShape& shape, const std::byte* a, const std::byte* b, std::byte* c, std::byte* workspace);

}  // namespace weft

#endif  // WEFT_OPS_KERNELS_OWN_GEMM_H_
