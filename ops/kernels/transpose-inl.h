// TransposeSquare transposes a square of numbers in vectors.
#if defined(WEFT_OPS_KERNELS_TRANSPOSE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef WEFT_OPS_KERNELS_TRANSPOSE_INL_H_
#undef WEFT_OPS_KERNELS_TRANSPOSE_INL_H_
#else
#define WEFT_OPS_KERNELS_TRANSPOSE_INL_H_
#endif

#include <cstddef>
#include <utility>

#include "weft/ops/kernels/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace weft {
namespace HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR
// Divides each row into groups of kBytes bytes. Exchanges the odd groups of row `a` with the even groups of row `b`.
template <size_t kBytes, class W>
HWY_INLINE void ExchangeGroups(V<W>* a, V<W>* b) {
  const D<W> d;
  const V<W> a0 = *a, b0 = *b;
  if constexpr (kBytes == sizeof(W)) {
    *a = hn::OddEven(hn::DupEven(b0), a0);
    *b = hn::OddEven(b0, hn::DupOdd(a0));
  } else if constexpr (kBytes == sizeof(double)) {
    const hn::Repartition<double, D<W>> pairs;
    const auto a1 = hn::BitCast(pairs, a0), b1 = hn::BitCast(pairs, b0);
    *a = hn::BitCast(d, hn::OddEven(hn::DupEven(b1), a1));
    *b = hn::BitCast(d, hn::OddEven(b1, hn::DupOdd(a1)));
  } else if constexpr (kBytes == 16) {
    *a = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(b0), a0);
    *b = hn::OddEvenBlocks(b0, hn::SwapAdjacentBlocks(a0));
  } else {
    *a = hn::ConcatLowerLower(d, b0, a0);
    *b = hn::ConcatUpperUpper(d, b0, a0);
  }
}

// Exchanges groups of kHalf elements between each pair of rows that are kHalf rows apart.
template <size_t kHalf, class W, size_t... kPairs>
HWY_INLINE void ExchangeGroups(V<W>* rows, std::index_sequence<kPairs...>) {
  (ExchangeGroups<kHalf * sizeof(W), W>(rows + kPairs / kHalf * 2 * kHalf + kPairs % kHalf,
                                        rows + kPairs / kHalf * 2 * kHalf + kPairs % kHalf + kHalf),
   ...);
}

// Transposes N rows of N lanes, where N is the number of lanes of a vector. Each step exchanges groups of kLanes / 2
// lanes between rows that are kLanes / 2 apart. The first step has kLanes = N, and each other step half of the last.
template <size_t kLanes, class W>
HWY_INLINE void TransposeSquare(V<W>* rows) {
  if constexpr (kLanes > 1) {
    ExchangeGroups<kLanes / 2, W>(rows, std::make_index_sequence<hn::MaxLanes(D<W>()) / 2>());
    TransposeSquare<kLanes / 2, W>(rows);
  }
}
#else
template <size_t kLanes, class W>
HWY_INLINE void TransposeSquare(V<W>*) {}  // of one element
#endif

}  // namespace HWY_NAMESPACE
}  // namespace weft
HWY_AFTER_NAMESPACE();

#endif  // per target
