// One loop over columns and rows serves all formats of weights, which weight_formats-inl.h has.
#include "weft/ops/kernels/weight_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/kernels/weight_rows.cc"
#define HWY_WANT_AVX3_DL 1  // for the dot products of bytes
#include "hwy/foreach_target.h"
// These includes follow foreach_target.h, which includes this file once for each instruction set.
#include "hwy/highway.h"
#include "weft/ops/kernels/weight_formats-inl.h"

HWY_BEFORE_NAMESPACE();
namespace weft {
namespace HWY_NAMESPACE {

template <class V>
HWY_INLINE float SumOf(V v) {
  const hn::DFromV<V> d;
  return hn::GetLane(hn::SumOfLanes(d, v));
}

// Computes kCols columns and kRows rows of y. Even and odd steps have sums of their own, so that additions overlap.
template <class Format, int kCols, int kRows>
HWY_INLINE void Block(const WeightRows& w, int64_t col, const typename Format::Prepared* a, float* y) {
  const int64_t bytes = Format::RowBytes(w.inner), stride = Format::Stride(w.inner), steps = Format::Steps(w.inner);
  const std::byte* rows[kCols];
  for (int j = 0; j < kCols; ++j) rows[j] = w.data + (col + j) * bytes;
  typename Format::Sum even[kCols][kRows], odd[kCols][kRows];
  const hn::DFromV<typename Format::Sum> d;
  HWY_UNROLL(4)
  for (int j = 0; j < kCols; ++j) {
    HWY_UNROLL(4)
    for (int r = 0; r < kRows; ++r) even[j][r] = odd[j][r] = hn::Zero(d);
  }
  int64_t s = 0;
  for (; s + 2 <= steps; s += 2) {
    Format::template Step<kCols, kRows>(rows, a, stride, s, even);
    Format::template Step<kCols, kRows>(rows, a, stride, s + 1, odd);
  }
  if (s < steps) Format::template Step<kCols, kRows>(rows, a, stride, s, even);
  Format::template Rest<kCols, kRows>(rows, a, stride, w.inner, odd);
  for (int j = 0; j < kCols; ++j) {
    for (int r = 0; r < kRows; ++r) y[r * w.cols + col + j] = SumOf(hn::Add(even[j][r], odd[j][r]));
  }
}

// Computes columns `first` .. `last` - 1 for kRows rows, kCols columns at a time.
template <class Format, int kCols, int kRows>
HWY_INLINE void Rows(const WeightRows& w, int64_t first, int64_t last, const typename Format::Prepared* a, float* y) {
  int64_t col = first;
  for (; col + kCols <= last; col += kCols) Block<Format, kCols, kRows>(w, col, a, y);
  if constexpr (kCols > 1) {
    for (; col < last; ++col) Block<Format, 1, kRows>(w, col, a, y);
  }
}

// The first 4 rows of a read one row of W after the other, which is the order in which the memory is fastest. After
// that, these rows of W are in the L2 cache, and arithmetic limits the speed. So several rows of W then share the loads
// of a, as many as there are registers for their sums.
template <class Format>
void AllColumns(const WeightRows& w, int64_t first, int64_t last, const typename Format::Prepared* a, int64_t rows,
                float* y) {
  constexpr int kCols = HWY_TARGET == HWY_AVX3_DL || HWY_TARGET == HWY_AVX3 ? 3 : 1;
  const int64_t stride = Format::Stride(w.inner);
  int64_t r = 0;
  if (rows >= 4) {
    Rows<Format, 1, 4>(w, first, last, a, y);
    r = 4;
  }
  for (; r + 4 <= rows; r += 4) Rows<Format, kCols, 4>(w, first, last, a + r * stride, y + r * w.cols);
  if (r + 2 <= rows) {
    Rows<Format, 1, 2>(w, first, last, a + r * stride, y + r * w.cols);
    r += 2;
  }
  if (r < rows) Rows<Format, 1, 1>(w, first, last, a + r * stride, y + r * w.cols);
}

template <class Format>
void PrepareAndMultiply(const WeightRows& w, int64_t first, int64_t last, const float* a, int64_t rows, float* y,
                        std::byte* workspace) {
  auto* const prepared = reinterpret_cast<typename Format::Prepared*>(workspace);
  for (int64_t r = 0; r < rows; ++r) Format::Prepare(a + r * w.inner, w.inner, prepared + r * Format::Stride(w.inner));
  AllColumns<Format>(w, first, last, prepared, rows, y);
}

void Multiply(const WeightRows& w, int64_t first, int64_t last, const float* a, int64_t rows, float* y,
              std::byte* workspace) {
  if (w.dtype == kF32) return AllColumns<F32Format>(w, first, last, a, rows, y);
  if (w.dtype == kBF16) return PrepareAndMultiply<BF16Format>(w, first, last, a, rows, y, workspace);
  if (w.dtype == kQ8_0) return PrepareAndMultiply<BlockFormat<kQ8_0>>(w, first, last, a, rows, y, workspace);
  PrepareAndMultiply<BlockFormat<kQ4_0>>(w, first, last, a, rows, y, workspace);
}

}  // namespace HWY_NAMESPACE
}  // namespace weft
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weft {

HWY_EXPORT(Multiply);

size_t WeightRowsWorkspace(DType dtype, int64_t rows, int64_t inner) {
  if (dtype == kF32) return 0;
  if (dtype == kBF16) return static_cast<size_t>(rows * inner) * sizeof(float);
  return static_cast<size_t>(rows * ((inner / kBlockElements + 1) / 2)) * kPreparedPair;
}

void MultiplyWeightRows(const WeightRows& w, int64_t first, int64_t last, const float* a, int64_t rows, float* y,
                        std::byte* workspace) {
  HWY_DYNAMIC_DISPATCH(Multiply)(w, first, last, a, rows, y, workspace);
}

}  // namespace weft
#endif
