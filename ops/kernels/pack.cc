// A matrix that is stored as B is copied row by row. A matrix that is stored as Bᵀ is transposed in registers.
#include "weft/ops/kernels/pack.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/kernels/pack.cc"
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

#if HWY_TARGET != HWY_SCALAR
// Loads a vector of words from consecutive elements of one row of Bᵀ. For bf16, rounds two elements to one word.
template <class T>
HWY_INLINE hn::Vec<hn::ScalableTag<uint32_t>> Words(const float* b) {
  const hn::ScalableTag<float> d;
  const auto low = hn::LoadU(d, b);
  if constexpr (kPerWord<T> == 1) {
    return hn::BitCast(hn::ScalableTag<uint32_t>(), low);
  } else {
    const auto high = hn::LoadU(d, b + hn::Lanes(d));
    return Pair(hn::ConcatEven(d, high, low), hn::ConcatOdd(d, high, low));
  }
}

// `words` holds groups of four 32-bit words. Stores group q to columns 0 .. 3 of row 4q + `i` of `panel`.
HWY_INLINE void StoreFours(hn::Vec<hn::ScalableTag<uint64_t>> words, int64_t i, int64_t width, uint32_t* panel) {
  const hn::ScalableTag<uint64_t> d;
  HWY_ALIGN uint64_t fours[HWY_MAX_BYTES / sizeof(uint64_t)];
  hn::Store(words, d, fours);
  for (size_t q = 0; 2 * q < hn::Lanes(d); ++q) {
    std::memcpy(panel + static_cast<int64_t>(4 * q + i) * width, fours + 2 * q, 4 * sizeof(uint32_t));
  }
}

// Packs panels of a matrix that is stored as Bᵀ, by transposing blocks of 4 × 4 words in registers. Packs 16 columns of
// B at a time along all of `inner`, so that only 16 rows of Bᵀ are read at once.
template <class T>
void PackTransposed(const Source& source, int64_t first, int64_t last, uint32_t* panels) {
  constexpr int64_t kBlock = 16;
  const PanelShape& shape = source.shape;
  const hn::ScalableTag<uint32_t> d;
  const hn::ScalableTag<uint64_t> d64;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), inner = shape.inner, width = shape.width;
  const int64_t rows = shape.rows() / kPerWord<T>, whole_rows = inner / kPerWord<T>;
  for (int64_t column = first * width; column < last * width; column += kBlock) {
    uint32_t* const strip = panels + column / width * rows * width + column % width;
    for (int64_t begin = 0; begin < rows; begin += kBlock) {
      const bool whole = begin + kBlock <= whole_rows && column + kBlock <= shape.cols;
      for (int64_t row = begin; !whole && row < std::min(begin + kBlock, rows); ++row) {
        for (int64_t j = 0; j < kBlock; ++j) strip[row * width + j] = WordAt<T>(source, row, column + j);
      }
      for (int64_t j = 0; whole && j < kBlock; j += 4) {
        const float* from = source.b + (column + j) * inner + begin * kPerWord<T>;
        for (int64_t row = begin; row < begin + kBlock; row += lanes, from += lanes * kPerWord<T>) {
          const auto a0 = Words<T>(from), a1 = Words<T>(from + inner), a2 = Words<T>(from + 2 * inner),
                     a3 = Words<T>(from + 3 * inner);
          const auto b0 = hn::BitCast(d64, hn::InterleaveLower(d, a0, a1)),
                     b1 = hn::BitCast(d64, hn::InterleaveLower(d, a2, a3)),
                     b2 = hn::BitCast(d64, hn::InterleaveUpper(d, a0, a1)),
                     b3 = hn::BitCast(d64, hn::InterleaveUpper(d, a2, a3));
          uint32_t* const to = strip + row * width + j;
          StoreFours(hn::InterleaveLower(d64, b0, b1), 0, width, to);
          StoreFours(hn::InterleaveUpper(d64, b0, b1), 1, width, to);
          StoreFours(hn::InterleaveLower(d64, b2, b3), 2, width, to);
          StoreFours(hn::InterleaveUpper(d64, b2, b3), 3, width, to);
        }
      }
    }
  }
}
#else
template <class T>
void PackTransposed(const Source& source, int64_t first, int64_t last, uint32_t* panels) {
  const int64_t rows = source.shape.rows() / kPerWord<T>, width = source.shape.width;
  for (int64_t i = first * rows * width; i < last * rows * width; ++i) {
    panels[i] = WordAt<T>(source, i / width % rows, i / width / rows * width + i % width);
  }
}
#endif

template <class T>
void Pack(const Source& source, int64_t first, int64_t last, uint32_t* panels) {
  source.transposed ? PackTransposed<T>(source, first, last, panels) : PackRows<T>(source, first, last, panels);
}

void PackWords(const PanelShape& shape, bool transposed, const float* b, int64_t first, int64_t last,
               uint32_t* panels) {
  const Source source = {shape, b, transposed};
  shape.dtype == kBF16 ? Pack<BF16>(source, first, last, panels) : Pack<float>(source, first, last, panels);
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

}  // namespace weft
#endif  // HWY_ONCE
