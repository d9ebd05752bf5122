// One loop over columns and rows serves all formats (weight_formats-inl.h, weight_blocks-inl.h). With AVX-512 VNNI,
// products of block formats with at least kMinPanelRows rows use weight_panels-inl.h.
#include <algorithm>
#include <tuple>
#include <type_traits>

#include "weft/base/arena.h"
#include "weft/ops/kernels/weights/weight_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/kernels/weights/weight_products.cc"
#define HWY_WANT_AVX3_DL 1  // for the dot products of bytes
#include "hwy/foreach_target.h"
// These includes follow foreach_target.h, which includes this file once for each instruction set.
#include "hwy/highway.h"
#include "weft/ops/kernels/weights/weight_blocks-inl.h"
#include "weft/ops/kernels/weights/weight_formats-inl.h"
#include "weft/ops/kernels/weights/weight_panels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace weft {
namespace HWY_NAMESPACE {

constexpr int kColumns = 4;  // columns of y whose sums are stored together

#if HWY_TARGET == HWY_SCALAR

// Stores the only lane of each of `n` vectors.
template <class V>
HWY_INLINE void StoreSums(V a, V b, V c, V d, int n, float* y) {
  const float sums[] = {a.raw, b.raw, c.raw, d.raw};
  std::copy_n(sums, n, y);
}

#else

// Adds the two halves of a vector until four lanes are left.
template <class V>
HWY_INLINE hn::Vec<hn::CappedTag<float, kColumns>> FoldToFour(V v) {
  const hn::DFromV<V> d;
  if constexpr (hn::MaxLanes(hn::DFromV<V>()) <= kColumns) {
    return v;
  } else {
    const hn::Half<decltype(d)> half;
    return FoldToFour(hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  }
}

// Stores the sum of the lanes of each of the first `n` of four vectors; n is 1 or 4. All sums add in the same order.
template <class V>
HWY_INLINE void StoreSums(V a, V b, V c, V d, int n, float* y) {
  const hn::DFromV<V> lanes;
  const hn::RepartitionToWide<decltype(lanes)> pairs;
  const V ab = hn::Add(hn::InterleaveLower(lanes, a, b), hn::InterleaveUpper(lanes, a, b));
  const V cd = hn::Add(hn::InterleaveLower(lanes, c, d), hn::InterleaveUpper(lanes, c, d));
  const auto ab_pairs = hn::BitCast(pairs, ab), cd_pairs = hn::BitCast(pairs, cd);
  const auto sums = FoldToFour(hn::Add(hn::BitCast(lanes, hn::InterleaveLower(pairs, ab_pairs, cd_pairs)),
                                       hn::BitCast(lanes, hn::InterleaveUpper(pairs, ab_pairs, cd_pairs))));
  if (n == kColumns) {
    hn::StoreU(sums, hn::CappedTag<float, kColumns>(), y);
  } else {
    *y = hn::GetLane(sums);
  }
}

#endif

// Computes kCols columns, 1 or kColumns, and kRows rows of y. If `ahead` is above 0, prefetches the bytes of W that are
// `ahead` bytes after those that it reads.
template <class Format, int kCols, int kRows>
HWY_INLINE void Block(const WeightRows& w, int64_t col, const typename Format::Prepared* a, float* y, int64_t ahead) {
  const int64_t bytes = Format::RowBytes(w.inner), stride = Format::Stride(w.inner);
  constexpr DTypeRow kRow = RowOf(Format::kDType);
  const int64_t steps = w.inner / Format::StepElements(), step_bytes = Format::StepElements() * kRow.bytes / kRow.block;
  const std::byte* rows[kCols];
  const std::byte* row = w.data + col * bytes;
  Unrolled<kCols>([&](auto j) HWY_ATTR __attribute__((always_inline)) {
    asm("" : "+r"(row));  // otherwise the compiler multiplies vectors of addresses, which takes longer
    rows[j] = row;
    row += bytes;
  });
  typename Format::Sum sums[kCols][kRows];
  const hn::DFromV<typename Format::Sum> d;
  Unrolled<kCols>([&](auto j) HWY_ATTR __attribute__((always_inline)) {
    Unrolled<kRows>([&](auto r) HWY_ATTR __attribute__((always_inline)) { sums[j][r] = hn::Zero(d); });
  });
  for (int64_t s = 0; s < steps; ++s) {
    if (ahead > 0) {
      Unrolled<kCols>([&](auto j) HWY_ATTR __attribute__((always_inline)) {
        for (int64_t i = 0; i == 0 || i + 32 <= step_bytes; i += 64) Prefetch(rows[j] + ahead + i);
      });
      ahead += step_bytes;
    }
    Format::template Step<kCols, kRows>(rows, a, stride, s, sums);
  }
  Format::template Rest<kCols, kRows>(rows, a, stride, w.inner, sums);
  Unrolled<kRows>([&](auto r) HWY_ATTR __attribute__((always_inline)) {
    float* const to = y + r * w.cols + col;
    if constexpr (kCols == kColumns) {
      StoreSums(sums[0][r], sums[1][r], sums[2][r], sums[3][r], kColumns, to);
    } else {
      StoreSums(sums[0][r], hn::Zero(d), hn::Zero(d), hn::Zero(d), 1, to);
    }
  });
}

// Calls Block as a function that is not inlined. For block formats this halves the compile time, and a call takes
// little time beside their arithmetic.
template <class Format, int kCols, int kRows>
HWY_NOINLINE void BlockApart(const WeightRows& w, int64_t col, const typename Format::Prepared* a, float* y,
                             int64_t ahead) {
  Block<Format, kCols, kRows>(w, col, a, y, ahead);
}
template <class Format, int kCols, int kRows>
HWY_INLINE void AnyBlock(const WeightRows& w, int64_t col, const typename Format::Prepared* a, float* y,
                         int64_t ahead) {
  if constexpr (IsBlockFormat(Format::kDType)) {
    BlockApart<Format, kCols, kRows>(w, col, a, y, ahead);
  } else {
    Block<Format, kCols, kRows>(w, col, a, y, ahead);
  }
}

// Computes columns `first` .. `last` - 1 for kRows rows, kCols columns at a time. If kAhead, `ahead` is as for Block.
template <class Format, int kCols, int kRows, bool kAhead>
HWY_INLINE void Rows(const WeightRows& w, int64_t first, int64_t last, const typename Format::Prepared* a, float* y,
                     int64_t ahead) {
  int64_t col = first;
  for (; col + kCols <= last; col += kCols) AnyBlock<Format, kCols, kRows>(w, col, a, y, kAhead ? ahead : 0);
  if constexpr (kCols > 1) {
    for (; col < last; ++col) AnyBlock<Format, 1, kRows>(w, col, a, y, kAhead ? ahead : 0);
  }
}

// Computes columns `first` .. `last` - 1 for some of `rows` rows. Returns their number: the largest for which there is
// code, except that 8 rows are computed as 4 and 4, which is faster than 6 and 2.
template <class Format, int kCols, bool kAhead>
HWY_INLINE int64_t SomeRows(const WeightRows& w, int64_t first, int64_t last, const typename Format::Prepared* a,
                            int64_t rows, float* y, int64_t ahead = 0) {
  if constexpr (Format::kMaxRows >= 6) {
    if (rows >= 6 && rows != 8) return Rows<Format, kCols, 6, kAhead>(w, first, last, a, y, ahead), 6;
  }
  if constexpr (Format::kMaxRows >= 4) {
    if (rows >= 4) return Rows<Format, kCols, 4, kAhead>(w, first, last, a, y, ahead), 4;
  }
  if (rows >= 2) return Rows<Format, kCols, 2, kAhead>(w, first, last, a, y, ahead), 2;
  return Rows<Format, kCols, 1, kAhead>(w, first, last, a, y, ahead), 1;
}

// Bytes of a panel of W, which then stays in the L1 cache beside the rows of a that multiply it. A panel has at least
// kColumns rows, so it may be larger.
constexpr int64_t kCachedBytes = 24 << 10;
// With at least this many rows, arithmetic takes about as long as reading W.
constexpr int64_t kManyRows = 12;

// Returns the bytes of `rows` prepared rows of a, rounded up so that a panel after them is aligned.
template <class Format>
size_t PreparedBytes(int64_t rows, int64_t inner) {
  return AlignUp(static_cast<size_t>(rows * Format::Stride(inner)) * sizeof(typename Format::Prepared));
}

// Reports whether a single row of a reads W fastest if it reads kColumns rows at once. A Xeon with AMX then reads f32
// and bf16 10% to 24% faster than one row after the other, which is the fastest order on Zen 5. The arithmetic of block
// formats gains nothing.
template <class Format>
bool ReadsRowsAtOnce() {
#if HWY_ARCH_X86
  static const bool intel = __builtin_cpu_is("intel");
  return intel && !IsBlockFormat(Format::kDType);
#else
  return false;
#endif
}

// A single row of a reads one row of W after the other, or kColumns rows at once while it prefetches the next kColumns
// rows. With several rows, the first of them prefetch the next panel of W while they multiply this one, and the others
// find the panel in the cache. From kManyRows rows on, kColumns rows of W share each load of a, because arithmetic then
// limits the speed.
template <class Format>
void AllColumns(const WeightRows& w, int64_t first, int64_t last, const typename Format::Prepared* a, int64_t rows,
                float* y) {
  if (rows == 0) return;
  const int64_t stride = Format::Stride(w.inner), bytes = Format::RowBytes(w.inner);
  const int64_t fit = kCachedBytes / std::max<int64_t>(bytes, 1);
  const int64_t panel = std::max<int64_t>(kColumns, fit / kColumns * kColumns);
  for (int64_t col = first; col < last; col += panel) {
    const int64_t end = std::min(col + panel, last);
    if (rows == 1) {
      constexpr int64_t kDistance = Format::kPrefetchDistance;
      ReadsRowsAtOnce<Format>() ? Rows<Format, kColumns, 1, true>(w, col, end, a, y, kColumns * bytes)
                                : Rows<Format, 1, 1, (kDistance > 0)>(w, col, end, a, y, kDistance);
      continue;
    }
    const int64_t ahead = panel * bytes;
    if (rows >= kManyRows) PrefetchOutput(y + col, rows, end - col, w.cols);
    int64_t r = rows >= kManyRows ? SomeRows<Format, kColumns, true>(w, col, end, a, rows, y, ahead)
                                  : SomeRows<Format, 1, true>(w, col, end, a, rows, y, ahead);
    while (r < rows) r += SomeRows<Format, kColumns, false>(w, col, end, a + r * stride, rows - r, y + r * w.cols);
  }
}

// Prepares rows of a at the beginning of the workspace. Returns them, or the rows themselves for a FloatFormat.
template <class Format>
const typename Format::Prepared* PrepareRows(const float* a, int64_t rows, int64_t inner, std::byte* workspace) {
  if constexpr (std::is_same_v<Format, FloatFormat<Format::kDType>>) {
    return a;
  } else {
    auto* const prepared = reinterpret_cast<typename Format::Prepared*>(workspace);
    for (int64_t r = 0; r < rows; ++r) Format::Prepare(a + r * inner, inner, prepared + r * Format::Stride(inner));
    return prepared;
  }
}

template <class Format>
void MultiplyBy(WeightRows w, int64_t first, int64_t last, const float* a, int64_t rows, float* y,
                std::byte* workspace) {
  const auto* const prepared = PrepareRows<Format>(a, rows, w.inner, workspace);
  w.inner = BlocksOf(w.dtype, w.inner) * RowOf(w.dtype).block;  // prepared rows end with zeros
#if HWY_TARGET == HWY_AVX3_DL
  if constexpr (IsBlockFormat(Format::kDType)) {
    if (rows >= kMinPanelRows) {
      auto* const panel = reinterpret_cast<PanelBlockOf<Format>*>(workspace + PreparedBytes<Format>(rows, w.inner));
      return MultiplyPanels<Format>(w, first, last, prepared, rows, y, panel);
    }
  }
#endif
  AllColumns<Format>(w, first, last, prepared, rows, y);
}

// Calls f(format) for the struct of a dtype.
template <class F, class... Formats>
void WithFormat(DType dtype, const F& f, std::tuple<Formats...>) {
  ((dtype == Formats::kDType ? f(Formats()) : void()), ...);
}
template <class F>
void WithFormat(DType dtype, const F& f) {
  WithFormat(dtype, f, std::tuple<FloatFormat<kF32>, FloatFormat<kF16>, BF16Format>());
  WithFormat(dtype, f, BlockFormats());
}

void Multiply(const WeightRows& w, int64_t first, int64_t last, const float* a, int64_t rows, float* y,
              std::byte* workspace) {
  WithFormat(w.dtype, [&](auto format) { MultiplyBy<decltype(format)>(w, first, last, a, rows, y, workspace); });
}

bool HasByteDotProductsHere() { return HWY_TARGET == HWY_AVX3_DL; }
size_t Workspace(DType dtype, int64_t rows, int64_t inner) {
  size_t bytes = 0;
  WithFormat(dtype, [&](auto format) {
    using Format = decltype(format);
    if (!std::is_same_v<Format, FloatFormat<Format::kDType>>) bytes = PreparedBytes<Format>(rows, inner);
    if (IsBlockFormat(dtype)) bytes += PanelWorkspace(dtype, inner);
  });
  return bytes;
}

}  // namespace HWY_NAMESPACE
}  // namespace weft
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weft {

HWY_EXPORT(Multiply);
HWY_EXPORT(Workspace);
HWY_EXPORT(HasByteDotProductsHere);

bool HasByteDotProducts() { return HWY_DYNAMIC_DISPATCH(HasByteDotProductsHere)(); }

size_t WeightRowsWorkspace(DType dtype, int64_t rows, int64_t inner) {
  return HWY_DYNAMIC_DISPATCH(Workspace)(dtype, rows, inner);
}

void MultiplyWeightRows(const WeightRows& w, int64_t first, int64_t last, const float* a, int64_t rows, float* y,
                        std::byte* workspace) {
  HWY_DYNAMIC_DISPATCH(Multiply)(w, first, last, a, rows, y, workspace);
}

}  // namespace weft
#endif
