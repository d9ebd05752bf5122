// OwnGemm multiplies f32 and bf16 matrices in f32, with Weft's own kernel for every instruction set. Gemm uses it where
// oneDNN has no fast kernel: for f32 on CPUs without AVX-512, and for bf16 on CPUs without bf16 products.
//
// The terms of a sum are added in blocks of at most 256 terms, and the blocks one after the other, so the bits of an
// element depend neither on the size of its tile nor on gaps between rows.
#ifndef WEFT_OPS_KERNELS_OWN_GEMM_H_
#define WEFT_OPS_KERNELS_OWN_GEMM_H_

#include <cstddef>

#include "weft/ops/kernels/gemm_shape.h"

namespace weft {

size_t OwnGemmWorkspace(const GemmShape& shape);  // bytes
// Computes a product or a batch of products. All sizes are at least 1, and a C that is added to is f32. `workspace` has
// OwnGemmWorkspace(shape) bytes and is aligned to kAlignment.
void OwnGemm(const GemmShape& shape, const std::byte* a, const std::byte* b, std::byte* c, std::byte* workspace);

}  // namespace weft

#endif  // WEFT_OPS_KERNELS_OWN_GEMM_H_
