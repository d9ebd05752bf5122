// Gemm computes a matrix product, or a batch of them, in f32. Operands are f32 or bf16, and so is the result of bf16.
//
// The bits of an element of A' B' depend only on its row of A', its column of B', the dtypes and the instruction set.
// They do not depend on the tile's rows and columns, the batch, transposition, packing, gaps between rows, or
// addresses. The compiler relies on this when it cuts products into tiles. gemm_search looks for exceptions.
//
// Terms are added in the order of the inner dimension, in blocks whose sizes are constants of the instruction set. If
// C is added to, the product is added to it block by block; with AMX, as a whole.
//
//   const GemmShape shape = {.rows = 8, .cols = 512, .inner = 768, .a_stride = 768, .b_stride = 768, .c_stride = 512,
//                            .transpose_b = true};
//   Gemm(shape, a, b, c, arena.Allocate(GemmWorkspace(shape)));
#ifndef WEFT_OPS_KERNELS_PRODUCT_GEMM_H_
#define WEFT_OPS_KERNELS_PRODUCT_GEMM_H_

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
  bool packed_b = false;                          // B is bf16, in panels (PanelShape); `batch` is 1
  bool accumulate = false;                        // C += A' B'; C is f32
  DType in = kF32, out = kF32;                    // dtypes of A and B, and of C; f32 operands give f32

  friend bool operator==(const GemmShape&, const GemmShape&) = default;
};

size_t GemmWorkspace(const GemmShape& shape);  // bytes of workspace, which must be aligned to kAlignment
void Gemm(const GemmShape& shape, const std::byte* a, const std::byte* b, std::byte* c, std::byte* workspace);

// Computes the product in double precision by plain loops. It serves f64 and tests.
void PlainGemm(const GemmShape& shape, const double* a, const double* b, double* c);

// The right operand of a product, B [inner, cols], in panels. A panel holds `width` columns in the order in which the
// product reads them. f32 panels are [panels, inner, width]: rows of B, also if B is stored transposed, without gaps
// between them. bf16 panels are [panels, inner / 2, 64, 2], the layout that the CPU multiplies; inner is rounded up to
// a multiple of 32. Elements beyond the rows and columns of B are zeros.
struct PanelShape {
  int64_t inner = 0, cols = 0, width = 64;  // `width` is a multiple of 16; for bf16 it is 64
  DType dtype = kF32;

  int64_t count() const { return (cols + width - 1) / width; }
  int64_t rows() const { return dtype == kBF16 ? (inner + 31) / 32 * 32 : inner; }
  int64_t size() const { return rows() * width; }                                         // elements of one panel
  size_t bytes() const { return static_cast<size_t>(count() * size()) * SizeOf(dtype); }  // of all panels
  // Returns the offset of element [k, j] of B, in elements from the first panel.
  int64_t Offset(int64_t k, int64_t j) const {
    const int64_t pair = dtype == kBF16 ? 2 : 1;
    return j / width * size() + (k / pair * width + j % width) * pair + k % pair;
  }
};

// Packs panels `first` .. `last` - 1 of f32 `b`. `transposed`: b is stored as [cols, inner], not [inner, cols].
// `panels`: the beginning of panel 0.
void PackPanels(const PanelShape& shape, bool transposed, const float* b, int64_t first, int64_t last,
                std::byte* panels);
// Does the same for a bf16 matrix that is stored as [cols, inner]. `inner` is a multiple of 32.
void PackTransposedBF16(const PanelShape& shape, const BF16* b, int64_t first, int64_t last, std::byte* panels);

}  // namespace weft

#endif  // WEFT_OPS_KERNELS_PRODUCT_GEMM_H_
