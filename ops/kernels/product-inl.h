// Multiply computes products of small matrices, in float or double, whose operands are in the cache. Larger products
// call it block by block. CopyRows and CopyTransposed copy blocks of their operands to workspaces.
#if defined(WEFT_OPS_KERNELS_PRODUCT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef WEFT_OPS_KERNELS_PRODUCT_INL_H_
#undef WEFT_OPS_KERNELS_PRODUCT_INL_H_
#else
#define WEFT_OPS_KERNELS_PRODUCT_INL_H_
#endif

#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "weft/ops/kernels/lanes-inl.h"
#include "weft/ops/kernels/space.h"

HWY_BEFORE_NAMESPACE();
namespace weft {
namespace HWY_NAMESPACE {
namespace {

// Describes a factor whose element (i, k) is data[i * row + k * col].
template <class W>
struct Factor {
  const W* data;
  int64_t row, col;
};

constexpr int64_t kRowsAtOnce = 6;  // rows of a product that share each load of the second operand
// Vectors of columns that share each element of the first operand. The sums of kRowsAtOnce rows stay in registers.
constexpr int kVectorsAtOnce = HWY_MAX_BYTES >= 64 ? 4 : 2;

// Computes sum + a b, lane by lane.
struct MultiplyAdd {
  template <class Vec>
  HWY_INLINE Vec operator()(Vec a, Vec b, Vec sum) const {
    return hn::MulAdd(a, b, sum);
  }
};

#if HWY_TARGET <= HWY_AVX3
// Computes the same of lanes that hold two bf16 each: adds both products of a lane to its sum. Needs AVX512_BF16.
struct MultiplyAddPairs {
  HWY_INLINE V<float> operator()(V<float> a, V<float> b, V<float> sum) const {
    asm("vdpbf16ps %2, %1, %0" : "+v"(sum.raw) : "v"(a.raw), "v"(b.raw));
    return sum;
  }
};
#endif

// Computes kRows rows and kVectors vectors of columns of c = a b or, if `add`, of c += a b. `Step` multiplies and adds.
// If kCopies, also copies b to `panel`. The arguments are numbers, because GCC loads a structure from the stack in one
// piece, which waits until all earlier stores, here of c, have reached the cache.
template <int kRows, int kVectors, class Step, bool kCopies, class W>
HWY_NOINLINE void Panel(const W* a, int64_t a_row, int64_t a_col, const W* b, int64_t b_stride, W* c, int64_t c_stride,
                        int64_t inner, bool add, W* panel) {
  constexpr int64_t kAhead = 32;  // rows of b from a prefetch to its use
  const D<W> d;
  const int64_t lanes = hn::Lanes(d);
  V<W> sums[kRows][kVectors] = {};
  // Three rows share a pointer, so that few registers hold addresses.
  const W *upper = a, *lower = kRows > 3 ? a + 3 * a_row : a;
  for (int64_t k = 0; k < inner; ++k, upper += a_col, lower += a_col, b += b_stride) {
    V<W> row[kVectors];
    HWY_UNROLL(4)
    for (int j = 0; j < kVectors; ++j) row[j] = hn::LoadU(d, b + j * lanes);
    if constexpr (kCopies) {
      HWY_UNROLL(4)
      for (int j = 0; j < kVectors; ++j) {
        __builtin_prefetch(b + kAhead * b_stride + j * lanes);
        hn::StoreU(row[j], d, panel + j * lanes);
      }
      panel += kVectorsAtOnce * lanes;
    }
    HWY_UNROLL(6)
    for (int i = 0; i < kRows; ++i) {
      const V<W> factor = hn::Set(d, i < 3 ? upper[i * a_row] : lower[(i - 3) * a_row]);
      HWY_UNROLL(4)
      for (int j = 0; j < kVectors; ++j) sums[i][j] = Step()(factor, row[j], sums[i][j]);
    }
  }
  HWY_UNROLL(6)
  for (int i = 0; i < kRows; ++i) {
    HWY_UNROLL(4)
    for (int j = 0; j < kVectors; ++j) {
      W* const to = c + i * c_stride + j * lanes;
      hn::StoreU(add ? hn::Add(hn::LoadU(d, to), sums[i][j]) : sums[i][j], d, to);
    }
  }
}

// Computes all columns of kRows rows.
template <int kRows, class Step, bool kCopies, class W>
HWY_INLINE void AllColumns(Factor<W> a, Matrix<const W> b, Matrix<W> c, int64_t cols, int64_t inner, bool add,
                           W* panel) {
  const int64_t lanes = hn::Lanes(D<W>());
  int64_t j = 0;
  const auto next = [&](auto vectors) {
    Panel<kRows, vectors(), Step, kCopies, W>(a.data, a.row, a.col, b.data + j, b.stride, c.data + j, c.stride, inner,
                                              add, kCopies ? panel + j : nullptr);
    j += vectors() * lanes;
  };
  while (j + kVectorsAtOnce * lanes <= cols) next(std::integral_constant<int, kVectorsAtOnce>());
  while (j + 2 * lanes <= cols) next(std::integral_constant<int, 2>());
  if (j < cols) next(std::integral_constant<int, 1>());
}

// Computes c = a b or, if `add`, c += a b. `cols` is whole vectors. Adds the terms of an element in the order k = 0 ..
// inner - 1. Reads all of b for each group of rows, so b should fit in the L1 cache. If kCopies, the first group copies
// up to kVectorsAtOnce vectors of columns to `panel`, which the other groups read. Calls before(i) before each group,
// where i is the first row behind it.
template <class W, class Step, bool kCopies, class Before>
void Multiply(Factor<W> a, Matrix<const W> b, Matrix<W> c, int64_t rows, int64_t cols, int64_t inner, bool add,
              W* panel, const Before& before) {
  int64_t i = 0;
  const auto next = [&](auto count) {
    before(i + count());
    const Factor<W> group = {a.data + i * a.row, a.row, a.col};
    if (kCopies && i == 0) {
      AllColumns<count(), Step, kCopies, W>(group, b, c, cols, inner, add, panel);
      b = {panel, static_cast<int64_t>(kVectorsAtOnce * hn::Lanes(D<W>()))};
    } else {
      AllColumns<count(), Step, false, W>(group, b, {c[i], c.stride}, cols, inner, add, nullptr);
    }
    i += count();
  };
  // Four rows are as efficient as six, but two are not, so eight rows are four and four.
  while (i + kRowsAtOnce <= rows && rows - i != 8) next(std::integral_constant<int, kRowsAtOnce>());
  while (i + 4 <= rows) next(std::integral_constant<int, 4>());
  while (i < rows) next(std::integral_constant<int, 1>());
}

// Computes a product in one piece.
template <class W>
void Multiply(Factor<W> a, Matrix<const W> b, Matrix<W> c, int64_t rows, int64_t cols, int64_t inner, bool add) {
  Multiply<W, MultiplyAdd, false>(a, b, c, rows, cols, inner, add, nullptr, [](int64_t) {});
}

// Copies rows begin .. begin + count - 1 of `from`, and fills the end of each row of `to` with zeros.
template <class T, class W>
void CopyRows(Matrix<const T> from, int64_t begin, int64_t count, int64_t width, Matrix<W> to) {
  for (int64_t i = 0; i < count; ++i) {
    ConvertArray(from[begin + i], to[i], width);
    std::fill(to[i] + width, to[i + 1], W{0});
  }
}

// Loads a square of `rows` with `load`, and copies it to the columns of `to`.
template <class T, class W, class Load, size_t... kRows>
HWY_INLINE void CopySquare(const Load& load, const std::array<const T*, sizeof...(kRows)>& rows, Matrix<W> to,
                           std::index_sequence<kRows...>) {
  V<W> square[] = {load(rows[kRows])...};
  TransposeSquare<sizeof...(kRows), W>(square);
  (hn::Store(square[kRows], D<W>(), to[kRows]), ...);
}

// Copies `count` rows of `width` elements to the columns of `to`, which has PaddedWidth(width) rows. `row(i)` is the
// beginning of row i, and `load(access, p)` loads a vector. Columns from `count` on, up to a whole vector, repeat the
// last row.
template <class T, class W, class Row, class Load>
HWY_INLINE void Transpose(int64_t count, int64_t width, const Row& row, const Load& load, Matrix<W> to) {
  constexpr size_t kLanes = hn::MaxLanes(D<W>());
  for (int64_t i = 0; i < count; i += kLanes) {
    std::array<const T*, kLanes> rows;
    for (size_t r = 0; r < kLanes; ++r) rows[r] = row(std::min(i + static_cast<int64_t>(r), count - 1));
    ForEachVector<T>(width, [&](const auto& access, int64_t c) {
      CopySquare<T, W>([&](const T* p) { return load(access, p + c); }, rows, {to[c] + i, to.stride},
                       std::make_index_sequence<kLanes>());
    });
  }
}

// Copies rows begin .. begin + count - 1 of `from`, times `factor`, to the columns of `to`, as Transpose does.
template <class T, class W>
void CopyTransposed(Matrix<const T> from, int64_t begin, int64_t count, int64_t width, W factor, Matrix<W> to) {
  Transpose<T, W>(
      count, width, [&](int64_t i) { return from[begin + i]; },
      [&](const auto& access, const T* p) { return hn::Mul(access.Load(p), hn::Set(D<W>(), factor)); }, to);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace weft
HWY_AFTER_NAMESPACE();

#endif  // per target
