// These functions copy blocks of positions to and from attention's workspace, and multiply small matrices there. The
// workspace is in float or double. This header is included once for each instruction set, as lanes-inl.h is.
#if defined(WEFT_OPS_KERNELS_BLOCK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef WEFT_OPS_KERNELS_BLOCK_INL_H_
#undef WEFT_OPS_KERNELS_BLOCK_INL_H_
#else
#define WEFT_OPS_KERNELS_BLOCK_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "hwy/highway.h"
#include "weft/ops/kernels/attention.h"
#include "weft/ops/kernels/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace weft {
namespace HWY_NAMESPACE {
namespace {

// Describes a matrix in the workspace. It has a row for each position of a block or, if transposed, for each feature.
template <class W>
struct Matrix {
  W* data;
  int64_t stride;
};
// Describes a factor whose element (i, k) is data[i * row + k * col].
template <class W>
struct Factor {
  const W* data;
  int64_t row, col;
};

// Copies and converts n elements.
template <class From, class To>
void Convert(const From* from, int64_t n, To* to) {
  const int64_t lanes = hn::Lanes(D<From>());
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) StoreLanes<To>(LoadLanes<From>(from + i), to + i);
  for (; i < n; ++i) to[i] = static_cast<To>(from[i]);
}

// Copies positions begin .. begin + count - 1, one row for each, and fills the end of each row with zeros.
template <class T, class W>
void CopyRows(Positions<const T> from, int64_t begin, int64_t count, int64_t width, Matrix<W> to) {
  for (int64_t i = 0; i < count; ++i) {
    W* const out = to.data + i * to.stride;
    Convert(from[begin + i], width, out);
    std::fill(out + width, out + to.stride, W{0});
  }
}
// Copies positions begin .. begin + count - 1 to the columns of `to`, whose rows are features. A row has
// kAttentionBlock elements; those beyond `count` become 0. Four positions are transposed at a time.
template <class T, class W>
void CopyTransposed(Positions<const T> from, int64_t begin, int64_t count, int64_t width, W* to) {
  const D<W> d;
  const int64_t lanes = hn::Lanes(d);
  HWY_ALIGN W together[4 * hn::MaxLanes(D<W>())];
  int64_t i = 0;
  for (; i + 4 <= count; i += 4) {
    const T *const row0 = from[begin + i], *const row1 = from[begin + i + 1];
    const T *const row2 = from[begin + i + 2], *const row3 = from[begin + i + 3];
    int64_t c = 0;
    for (; c + lanes <= width; c += lanes) {
      hn::StoreInterleaved4(LoadLanes<T>(row0 + c), LoadLanes<T>(row1 + c), LoadLanes<T>(row2 + c),
                            LoadLanes<T>(row3 + c), d, together);
      for (int64_t k = 0; k < lanes; ++k)
        std::memcpy(to + (c + k) * kAttentionBlock + i, together + 4 * k, 4 * sizeof(W));
    }
    for (; c < width; ++c) {
      W* const out = to + c * kAttentionBlock + i;
      out[0] = static_cast<W>(row0[c]);
      out[1] = static_cast<W>(row1[c]);
      out[2] = static_cast<W>(row2[c]);
      out[3] = static_cast<W>(row3[c]);
    }
  }
  for (; i < count; ++i) {
    for (int64_t c = 0; c < width; ++c) to[c * kAttentionBlock + i] = static_cast<W>(from[begin + i][c]);
  }
  if (count == kAttentionBlock) return;
  for (int64_t c = 0; c < width; ++c) std::fill(to + c * kAttentionBlock + count, to + (c + 1) * kAttentionBlock, W{0});
}

constexpr int64_t kRowsAtOnce = 8;  // rows of a product that share each load of the second operand

// Computes kRows rows and kVectors vectors of columns of c = a b or, if `add`, of c += a b. Element (i, k) of a is
// a[i * a_row + k * a_col].
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

template <int kRows, class W>
HWY_INLINE void PanelRows(Factor<W> a, Matrix<const W> b, Matrix<W> c, int64_t cols, int64_t inner, bool add) {
  const int64_t lanes = hn::Lanes(D<W>());
  int64_t j = 0;
  for (; j + 2 * lanes <= cols; j += 2 * lanes) {
    Panel<kRows, 2>(a.data, a.row, a.col, b.data + j, b.stride, c.data + j, c.stride, inner, add);
  }
  if (j < cols) Panel<kRows, 1>(a.data, a.row, a.col, b.data + j, b.stride, c.data + j, c.stride, inner, add);
}

// Computes c = a b or, if `add`, c += a b. `rows` is at most kRowsAtOnce, and `cols` is whole vectors. The terms of an
// element are added in the order k = 0 .. inner - 1.
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

#endif  // per target
