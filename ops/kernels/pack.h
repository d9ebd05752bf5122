// Panels of the right operand of a product, B [inner, cols]: `width` of its columns each, in the order in which the
// product runs through them. That of f32 is [panels, inner, width]: a tile's columns without gaps between their rows,
// and not transposed. That of bf16 is [panels, inner / 2, 64, 2], where inner is filled up to a multiple of 32: what
// the CPU multiplies. Columns and rows that B has not are zeros.
#ifndef WEFT_OPS_KERNELS_PACK_H_
#define WEFT_OPS_KERNELS_PACK_H_

#include <cstddef>
#include <cstdint>

#include "weft/core/dtype.h"

namespace weft {

struct PanelShape {
  int64_t inner = 0, cols = 0, width = 64;  // width: a multiple of 16, and 64 for bf16
  DType dtype = kF32;

  int64_t count() const { return (cols + width - 1) / width; }
  int64_t rows() const { return dtype == kBF16 ? (inner + 31) / 32 * 32 : inner; }
  int64_t size() const { return rows() * width; }  // elements of one
  // Where element [k, j] of B is, counted from the first panel.
  int64_t Offset(int64_t k, int64_t j) const {
    const int64_t pair = dtype == kBF16 ? 2 : 1;
    return j / width * size() + (k / pair * width + j % width) * pair + k % pair;
  }
};

// Panels `first` .. `last` - 1 of b, f32 stored as [inner, cols] or, transposed, as [cols, inner]. `panels` is where
// the first of all begins.
void PackPanels(const PanelShape& shape, bool transposed, const float* b, int64_t first, int64_t last,
                std::byte* panels);

}  // namespace weft

#endif  // WEFT_OPS_KERNELS_PACK_H_
