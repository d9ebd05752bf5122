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
template <int kRows, int kVectors, class Step, class W>
HWY_INLINE void Panel(Factor<W> a, Matrix<const W> b, Matrix<W> c, int64_t inner, bool add) {
  const D<W> d;
  const int64_t lanes = hn::Lanes(d);
  V<W> sums[kRows][kVectors] = {};
  // Three rows share a pointer, so that few registers hold addresses.
  const W *upper = a.data, *lower = kRows > 3 ? a.data + 3 * a.row : a.data, *next = b.data;
  for (int64_t k = 0; k < inner; ++k, upper += a.col, lower += a.col, next += b.stride) {
    V<W> row[kVectors];
    HWY_UNROLL(4)
    for (int j = 0; j < kVectors; ++j) row[j] = hn::LoadU(d, next + j * lanes);
    HWY_UNROLL(6)
    for (int i = 0; i < kRows; ++i) {
      const V<W> factor = hn::Set(d, i < 3 ? upper[i * a.row] : lower[(i - 3) * a.row]);
      HWY_UNROLL(4)
      for (int j = 0; j < kVectors; ++j) sums[i][j] = Step()(factor, row[j], sums[i][j]);
    }
  }
  HWY_UNROLL(6)
  for (int i = 0; i < kRows; ++i) {
    HWY_UNROLL(4)
    for (int j = 0; j < kVectors; ++j) {
      W* const to = c[i] + j * lanes;
      hn::StoreU(add ? hn::Add(hn::LoadU(d, to), sums[i][j]) : sums[i][j], d, to);
    }
  }
}

// Computes all columns of kRows rows.
template <int kRows, class Step, class W>
HWY_INLINE void AllColumns(Factor<W> a, Matrix<const W> b, Matrix<W> c, int64_t cols, int64_t inner, bool add) {
  const int64_t lanes = hn::Lanes(D<W>());
  int64_t j = 0;
  const auto next = [&](auto vectors) {
    Panel<kRows, vectors(), Step, W>(a, {b.data + j, b.stride}, {c.data + j, c.stride}, inner, add);
    j += vectors() * lanes;
  };
  while (j + kVectorsAtOnce * lanes <= cols) next(std::integral_constant<int, kVectorsAtOnce>());
  while (j + 2 * lanes <= cols) next(std::integral_constant<int, 2>());
  if (j < cols) next(std::integral_constant<int, 1>());
}

// Computes c = a b or, if `add`, c += a b. `cols` is whole vectors. Adds the terms of an element in the order k = 0 ..
// inner - 1. Reads all of b for each group of kRowsAtOnce rows, so b should fit in the L1 cache.
template <class W, class Step = MultiplyAdd>
void Multiply(Factor<W> a, Matrix<const W> b, Matrix<W> c, int64_t rows, int64_t cols, int64_t inner, bool add) {
  int64_t i = 0;
  const auto next = [&](auto count) {
    AllColumns<count(), Step, W>({a.data + i * a.row, a.row, a.col}, b, {c[i], c.stride}, cols, inner, add);
    i += count();
  };
  // Four rows are as efficient as six, but two are not, so eight rows are four and four.
  while (i + kRowsAtOnce <= rows && rows - i != 8) next(std::integral_constant<int, kRowsAtOnce>());
  while (i + 4 <= rows) next(std::integral_constant<int, 4>());
  while (i < rows) next(std::integral_constant<int, 1>());
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
