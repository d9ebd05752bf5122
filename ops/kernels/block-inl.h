// These functions copy blocks of rows to workspaces, as they are or transposed. This header is included once for each
// instruction set, as lanes-inl.h is.
#if defined(WEFT_OPS_KERNELS_BLOCK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef WEFT_OPS_KERNELS_BLOCK_INL_H_
#undef WEFT_OPS_KERNELS_BLOCK_INL_H_
#else
#define WEFT_OPS_KERNELS_BLOCK_INL_H_
#endif

#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "hwy/highway.h"
#include "weft/ops/kernels/lanes-inl.h"
#include "weft/ops/kernels/product-inl.h"
#include "weft/ops/kernels/space.h"
#include "weft/ops/kernels/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace weft {
namespace HWY_NAMESPACE {
namespace {

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
void CopyRows(Matrix<const T> from, int64_t begin, int64_t count, int64_t width, Matrix<W> to) {
  for (int64_t i = 0; i < count; ++i) {
    Convert(from[begin + i], width, to[i]);
    std::fill(to[i] + width, to[i + 1], W{0});
  }
}

// Copies a square of `rows`, times `factor`, to the columns of `to`.
template <class T, class W, class Access, size_t... kRows>
HWY_INLINE void CopySquare(const Access& access, const std::array<const T*, sizeof...(kRows)>& rows, int64_t column,
                           W factor, Matrix<W> to, std::index_sequence<kRows...>) {
  const D<W> d;
  V<W> square[] = {hn::Mul(access.Load(rows[kRows] + column), hn::Set(d, factor))...};
  TransposeSquare<sizeof...(kRows), W>(square);
  (hn::Store(square[kRows], d, to[kRows]), ...);
}

// Copies positions begin .. begin + count - 1, times `factor`, to the columns of `to`, which has PaddedWidth(width)
// rows. Columns from `count` on, up to a whole vector, repeat the last position.
template <class T, class W>
void CopyTransposed(Matrix<const T> from, int64_t begin, int64_t count, int64_t width, W factor, Matrix<W> to) {
  constexpr size_t kLanes = hn::MaxLanes(D<W>());
  for (int64_t i = 0; i < count; i += kLanes) {
    std::array<const T*, kLanes> rows;
    for (size_t r = 0; r < kLanes; ++r) rows[r] = from[begin + std::min(i + static_cast<int64_t>(r), count - 1)];
    ForEachVector<T>(width, [&](const auto& access, int64_t c) {
      CopySquare<T, W>(access, rows, c, factor, {to[c] + i, to.stride}, std::make_index_sequence<kLanes>());
    });
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace weft
HWY_AFTER_NAMESPACE();

#endif  // per target
