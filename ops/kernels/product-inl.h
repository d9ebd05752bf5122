// These functions multiply small matrices in a kernel's workspace. Like all -inl headers of Highway, this header is
// included once for each instruction set.
#if defined(WEFT_OPS_KERNELS_PRODUCT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef WEFT_OPS_KERNELS_PRODUCT_INL_H_
#undef WEFT_OPS_KERNELS_PRODUCT_INL_H_
#else
#define WEFT_OPS_KERNELS_PRODUCT_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"
#include "weft/ops/kernels/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace weft {
namespace HWY_NAMESPACE {
namespace {

constexpr int64_t kRowsAtOnce = 8;  // rows of a product that share one load of the second operand

// Computes kRows rows by kVectors vectors of c = a b or, if `add`, c += a b. Element (i, k) of a is a[i * a_row + k *
// a_col].
template <int kRows, int kVectors, class W>
HWY_INLINE void Panel(const W* a, int64_t a_row, int64_t a_col, const W* b, int64_t b_row, W* c, int64_t c_row,
                      int64_t inner, bool add) {
  const D<W> d;
  const int64_t lanes = hn::Lanes(d);
  V<W> sums[kRows][kVectors];
  HWY_UNROLL(8)
  for (int i = 0; i < kRows; ++i) {
    HWY_UNROLL(2)
    for (int j = 0; j < kVectors; ++j) sums[i][j] = add ? hn::Load(d, c + i * c_row + j * lanes) : hn::Zero(d);
  }
  for (int64_t k = 0; k < inner; ++k) {
    V<W> row[kVectors];
    HWY_UNROLL(2)
    for (int j = 0; j < kVectors; ++j) row[j] = hn::Load(d, b + k * b_row + j * lanes);
    HWY_UNROLL(8)
    for (int i = 0; i < kRows; ++i) {
      const V<W> factor = hn::Set(d, a[i * a_row + k * a_col]);
      HWY_UNROLL(2)
      for (int j = 0; j < kVectors; ++j) sums[i][j] = hn::MulAdd(factor, row[j], sums[i][j]);
    }
  }
  HWY_UNROLL(8)
  for (int i = 0; i < kRows; ++i) {
    HWY_UNROLL(2)
    for (int j = 0; j < kVectors; ++j) hn::Store(sums[i][j], d, c + i * c_row + j * lanes);
  }
}

// A matrix in the workspace with a row for each position of a block or, if transposed, for each feature.
template <class W>
struct Matrix {
  W* data;
  int64_t stride;
};
// An operand. Its element (i, k) is data[i * row + k * col].
template <class W>
struct Factor {
  const W* data;
  int64_t row, col;
};

template <int kRows, class W>
HWY_INLINE void PanelRows(Factor<W> a, Matrix<const W> b, Matrix<W> c, int64_t cols, int64_t inner, bool add) {
  const int64_t lanes = hn::Lanes(D<W>());
  int64_t j = 0;
  for (; j + 2 * lanes <= cols; j += 2 * lanes) {
    Panel<kRows, 2>(a.data, a.row, a.col, b.data + j, b.stride, c.data + j, c.stride, inner, add);
  }
  if (j < cols) Panel<kRows, 1>(a.data, a.row, a.col, b.data + j, b.stride, c.data + j, c.stride, inner, add);
}

// Computes c = a b or c += a b for at most kRowsAtOnce rows and for whole vectors of columns. The terms of each element
// are added in the order of k.
template <class W>
void Multiply(Factor<W> a, Matrix<const W> b, Matrix<W> c, int64_t rows, int64_t cols, int64_t inner, bool add) {
  if (rows == kRowsAtOnce) return PanelRows<kRowsAtOnce>(a, b, c, cols, inner, add);
  for (int64_t i = 0; i < rows; ++i) {
    PanelRows<1, W>({a.data + i * a.row, a.row, a.col}, b, {c.data + i * c.stride, c.stride}, cols, inner, add);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace weft
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
