// A matrix that is stored as B is copied row by row. A matrix that is stored as Bᵀ is transposed in registers.
#include <algorithm>
#include <cstring>
#include <utility>

#include "weft/ops/kernels/product/gemm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/kernels/product/pack.cc"
#include "hwy/foreach_target.h"
// These includes follow foreach_target.h, which includes this file once for each instruction set.
#include "hwy/highway.h"
#include "weft/ops/kernels/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace weft {
namespace HWY_NAMESPACE {

// Describes the matrix B to pack. Panels are rows of 32-bit words. A word is one f32 element, or two bf16 elements that
// are neighbours along `inner`.
struct Source {
  const PanelShape& shape;
  const float* b;
  bool transposed;
};

template <class T>
constexpr int64_t kPerWord = sizeof(uint32_t) / sizeof(T);

HWY_INLINE hn::Vec<hn::RebindToUnsigned<D<float>>> Pair(V<float> even, V<float> odd) {
  const auto upper = hn::Set(hn::RebindToUnsigned<D<float>>(), 0xffff0000);
  return hn::Or(hn::ShiftRight<16>(RoundedBits(even)), hn::And(RoundedBits(odd), upper));
}

template <class T>
HWY_INLINE uint32_t WordAt(const Source& source, int64_t row, int64_t j) {
  const PanelShape& shape = source.shape;
  T parts[kPerWord<T>];
  for (int64_t i = 0; i < kPerWord<T>; ++i) {
    const int64_t k = row * kPerWord<T> + i;
    const bool inside = k < shape.inner && j < shape.cols;
    parts[i] = T(inside ? source.b[source.transposed ? j * shape.inner + k : k * shape.cols + j] : 0.0f);
  }
  uint32_t word;
  std::memcpy(&word, parts, sizeof(word));
  return word;
}

// Packs panels `first` .. `last` - 1 of a matrix that is stored as B. Reads B row by row, in the order of its memory.
template <class T>
void PackRows(const Source& source, int64_t first, int64_t last, uint32_t* panels) {
  const PanelShape& shape = source.shape;
  const hn::ScalableTag<float> d;
  const hn::RebindToUnsigned<decltype(d)> d32;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), width = shape.width;
  const int64_t rows = shape.rows() / kPerWord<T>, whole_rows = shape.inner / kPerWord<T>;
  for (int64_t row = 0; row < rows; ++row) {
    const float* const from = source.b + row * kPerWord<T> * shape.cols;
    for (int64_t p = first; p < last; ++p) {
      uint32_t* const to = panels + (p * rows + row) * width;
      if (row >= whole_rows || (p + 1) * width > shape.cols) {
        for (int64_t j = 0; j < width; ++j) to[j] = WordAt<T>(source, row, p * width + j);
        continue;
      }
      for (int64_t j = 0; j < width; j += lanes) {
        const auto even = hn::LoadU(d, from + p * width + j);
        if constexpr (kPerWord<T> == 1) {
          hn::StoreU(hn::BitCast(d32, even), d32, to + j);
        } else {
          hn::StoreU(Pair(even, hn::LoadU(d, from + shape.cols + p * width + j)), d32, to + j);
        }
      }
    }
  }
}

// Loads a vector of words from consecutive elements of one row of Bᵀ. For bf16, rounds two elements to one word.
template <class T>
HWY_INLINE V<float> Words(const float* b) {
  const hn::ScalableTag<float> d;
  const auto low = hn::LoadU(d, b);
#if HWY_TARGET != HWY_SCALAR
  if constexpr (kPerWord<T> == 2) {
    const auto high = hn::LoadU(d, b + hn::Lanes(d));
    return hn::BitCast(d, Pair(hn::ConcatEven(d, high, low), hn::ConcatOdd(d, high, low)));
  }
#endif
  return low;
}

// Packs a square of words: N words of each of N rows of Bᵀ, where N is the number of lanes of a vector. `inner` is the
// number of elements of a row of Bᵀ.
template <class T, size_t... kRows>
HWY_INLINE void PackSquare(const float* b, int64_t inner, int64_t width, uint32_t* panel,
                           std::index_sequence<kRows...>) {
  V<float> square[] = {Words<T>(b + kRows * inner)...};
  TransposeSquare<sizeof...(kRows), float>(square);
  const hn::ScalableTag<uint32_t> d;
  (hn::StoreU(hn::BitCast(d, square[kRows]), d, panel + kRows * width), ...);
}

// Packs panels of a matrix that is stored as Bᵀ. Takes N rows of Bᵀ at a time, where N is the number of lanes of a
// vector, and packs them from their beginning to their end. So memory is read in N sequences.
template <class T>
void PackTransposed(const Source& source, int64_t first, int64_t last, uint32_t* panels) {
  constexpr int64_t kLanes = hn::MaxLanes(hn::ScalableTag<float>());
  const PanelShape& shape = source.shape;
  const int64_t inner = shape.inner, width = shape.width;
  const int64_t rows = shape.rows() / kPerWord<T>;
  // Words<BF16> needs vectors, so scalar code packs bf16 word by word.
  const int64_t whole_rows = kLanes == 1 && kPerWord<T> == 2 ? 0 : inner / kPerWord<T>;
  for (int64_t column = first * width; column < last * width; column += kLanes) {
    uint32_t* const strip = panels + column / width * rows * width + column % width;
    for (int64_t row = 0; row < rows; row += kLanes) {
      if (row + kLanes <= whole_rows && column + kLanes <= shape.cols) {
        PackSquare<T>(source.b + column * inner + row * kPerWord<T>, inner, width, strip + row * width,
                      std::make_index_sequence<kLanes>());
        continue;
      }
      for (int64_t r = row; r < std::min(row + kLanes, rows); ++r) {
        for (int64_t j = 0; j < kLanes; ++j) strip[r * width + j] = WordAt<T>(source, r, column + j);
      }
    }
  }
}

void PackWords(const PanelShape& shape, bool transposed, const float* b, int64_t first, int64_t last,
               uint32_t* panels) {
  const bool rounds = shape.dtype == kBF16;
  const auto pack = transposed ? (rounds ? PackTransposed<BF16> : PackTransposed<float>)
                               : (rounds ? PackRows<BF16> : PackRows<float>);
  pack({shape, b, transposed}, first, last, panels);
}

}  // namespace HWY_NAMESPACE
}  // namespace weft
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weft {

HWY_EXPORT(PackWords);

void PackPanels(const PanelShape& shape, bool transposed, const float* b, int64_t first, int64_t last,
                std::byte* panels) {
  HWY_DYNAMIC_DISPATCH(PackWords)(shape, transposed, b, first, last, reinterpret_cast<uint32_t*>(panels));
}

// A word of the panels is two neighbours of a row of Bᵀ. So a row of words is packed like a row of f32 elements.
void PackTransposedBF16(const PanelShape& shape, const BF16* b, int64_t first, int64_t last, std::byte* panels) {
  const PanelShape words = {.inner = shape.inner / 2, .cols = shape.cols, .width = shape.width, .dtype = kF32};
  PackPanels(words, /*transposed=*/true, reinterpret_cast<const float*>(b), first, last, panels);
}

}  // namespace weft
#endif  // HWY_ONCE
