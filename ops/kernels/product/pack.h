// PackPanels packs the right operand of a product, B [inner, cols], into panels. A panel holds `width` columns in the
// order in which the product reads them.
//
// f32 panels are [panels, inner, width]: rows of B, also if B is stored transposed, without gaps between them. bf16
// panels are [panels, inner / 2, 64, 2], the layout that the CPU multiplies; inner is rounded up to a multiple of 32.
// Elements beyond the rows and columns of B are zeros.
#ifndef WEFT_OPS_KERNELS_PRODUCT_PACK_H_
#define WEFT_OPS_KERNELS_PRODUCT_PACK_H_

#include <cstddef>
#include <cstdint>

#include "weft/core/dtype.h"

namespace weft {

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

#endif  // WEFT_OPS_KERNELS_PRODUCT_PACK_H_
