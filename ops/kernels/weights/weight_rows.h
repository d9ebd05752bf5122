// MultiplyWeightRows computes y = a Wᵀ. Each call reads its rows of W from memory once, in the order of the memory.
// With one row of a, memory limits the speed. With more rows, panels of W stay in a cache while all rows of a multiply
// them, and the next panel is prefetched. It is fast for up to about 160 rows, and for any number of rows if W has a
// block format and the CPU has AVX-512 VNNI (weight_panels-inl.h).
//
// W [cols, inner] is stored by rows in f32, bf16, f16 or a block format (core/block_formats.h), and is decoded in
// registers. For a block format, a is rounded to 8 bits, by blocks of 32 elements with a scale each. The products of a
// block are then sums of integers. An element's bits depend on its row of a and its row of W only.
#ifndef WEFT_OPS_KERNELS_WEIGHTS_WEIGHT_ROWS_H_
#define WEFT_OPS_KERNELS_WEIGHTS_WEIGHT_ROWS_H_

#include <cstddef>
#include <cstdint>

#include "weft/core/dtype.h"

namespace weft {

struct WeightRows {
  const std::byte* data = nullptr;  // row 0
  DType dtype = kF32;
  int64_t cols = 0, inner = 0;
};

// Reports whether this CPU has AVX-512 VNNI. Then products of block formats with many rows of a are faster than in
// bf16.
bool HasByteDotProducts();

// Returns the bytes of workspace that `rows` rows of a need. The workspace must be aligned to kAlignment.
size_t WeightRowsWorkspace(DType dtype, int64_t rows, int64_t inner);

// Computes columns `first` .. `last` - 1 of y. Rows of a are `inner` elements apart, and rows of y `w.cols`. `y`:
// column 0 of its first row.
void MultiplyWeightRows(const WeightRows& w, int64_t first, int64_t last, const float* a, int64_t rows, float* y,
                        std::byte* workspace);

}  // namespace weft

#endif  // WEFT_OPS_KERNELS_WEIGHTS_WEIGHT_ROWS_H_
