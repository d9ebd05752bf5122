// C is computed in panels of a few vectors of columns, from one block of terms after the other. The part of B that a
// panel needs is copied to the workspace, where it stays in the L1 cache while all rows of A are multiplied by it.
// Where a copy has the order of B, the first rows are multiplied by B itself, and copy it on the way. Edges are
// computed like whole panels, so all elements of C are sums of the same terms in the same order.
#include "weft/ops/kernels/product/gemm.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>
#include <type_traits>

#include "weft/base/status.h"
#include "weft/ops/kernels/instruction_set.h"
#include "weft/ops/kernels/product/amx.h"
#include "weft/ops/kernels/space.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/kernels/product/gemm.cc"
#include "hwy/foreach_target.h"
// These includes follow foreach_target.h, which includes this file once for each instruction set.
#include "hwy/highway.h"
#include "weft/ops/kernels/product-inl.h"

HWY_BEFORE_NAMESPACE();
namespace weft {
namespace HWY_NAMESPACE {
namespace {

constexpr int64_t kLanes = hn::MaxLanes(D<float>()), kWidth = kVectorsAtOnce * kLanes;  // columns of a panel
constexpr int64_t kRowsInPlace = 8;  // this many rows are multiplied by B where it is: a copy costs more than it saves
constexpr int64_t kSmall = 1 << 18;  // operands of this many elements stay in the L2 cache, and are not prefetched

// Operands are multiplied in words: an f32 number, or two bf16 numbers that are neighbours along the inner dimension. A
// kind of product says which, and how words are multiplied. kTerms: terms that are added before the sum is added to C.
// kRows: rows of A that are copied at once; with AMX, two tiles. A copied panel of B takes 32 KB with AVX-512, 16 KB
// with AVX2, and less otherwise, so that it stays in the L1 cache. With AMX it takes 64 KB; half of it is read at a
// time.
struct F32 {
  using T = float;
  static constexpr int64_t kPerWord = 1, kTerms = kWidth > 16 ? 128 : 256, kRows = 96;
  static constexpr bool kAmx = false;
  using Step = MultiplyAdd;
};
struct WidenedBF16 : F32 {
  using T = BF16;
};
#if HWY_TARGET <= HWY_AVX3
struct PairsOfBF16 {
  using T = BF16;
  static constexpr int64_t kPerWord = 2, kTerms = 256, kRows = 96;
  static constexpr bool kAmx = false;
  using Step = MultiplyAddPairs;
};
struct TilesOfBF16 : PairsOfBF16 {
  static constexpr int64_t kTerms = 512, kRows = 32;
  static constexpr bool kAmx = true;
};
#endif

template <class Kind>
constexpr int64_t kWords = Kind::kTerms / Kind::kPerWord;  // rows of a copied panel of B
// Words between copied rows of A. Rows of a power of two would share sets of the cache.
template <class Kind>
constexpr int64_t kRowOfA = kWords<Kind> + 16;

// Reports whether all rows of A are copied, because the kernel cannot read them where they are, or because rows that
// are whole pages apart (of 1,024 elements) share sets of the caches. A word of bf16 must begin at an even element.
template <class Kind>
bool CopiesA(const GemmShape& shape) {
  if (shape.transpose_a) return true;
  if (Kind::kPerWord == 2) return shape.a_stride % 2 != 0;
  return shape.in == kBF16 || shape.a_stride % 1024 == 0;
}

// Reports whether C is computed in the workspace: to be rounded, or to be added at the end of a sum.
template <class Kind>
bool BuffersC(const GemmShape& shape) {
  return shape.out == kBF16 || (Kind::kAmx && shape.accumulate);
}

// Arrays in the workspace. `columns`: some rows of a transposed A. `c`: the product, if C is computed here.
template <class Kind>
struct Space {
  float *a, *b, *edge, *columns, *c;

  Space(const GemmShape& shape, SpaceTaker* space)
      : a(space->Take<float>(RoundUp(Kind::kPerWord == 2 || CopiesA<Kind>(shape) ? shape.rows : 0, Kind::kRows) *
                             kRowOfA<Kind>)),
        b(space->Take<float>(kWords<Kind> * kWidth)),
        edge(space->Take<float>(Kind::kRows * kWidth)),
        columns(space->Take<float>(Kind::kPerWord > 1 && shape.transpose_a ? kWords<Kind> * Kind::kRows : 0)),
        c(space->Take<float>(BuffersC<Kind>(shape) ? shape.rows * shape.cols : 0)) {}
};

// Prefetches a part of a matrix to the L2 cache, a few whole rows at a time.
class Prefetcher {
 public:
  // `first`: first element of the part, which has `count` elements of each of `rows` rows.
  template <class T>
  Prefetcher(const T* first, int64_t stride, int64_t rows, int64_t count)
      : first_(reinterpret_cast<const std::byte*>(first)),
        stride_(stride * static_cast<int64_t>(sizeof(T))),
        rows_(rows),
        bytes_(count * static_cast<int64_t>(sizeof(T))) {}

  // Prefetches the next of `parts` equal parts.
  void PrefetchPart(int64_t parts) {
    for (const int64_t end = std::min(row_ + (rows_ + parts - 1) / parts, rows_); row_ < end; ++row_) {
      for (int64_t at = 0; at < bytes_; at += 64) {
        __builtin_prefetch(first_ + row_ * stride_ + at, /*rw=*/0, /*locality=*/2);
      }
    }
  }

 private:
  const std::byte* first_;
  int64_t stride_, rows_, bytes_, row_ = 0;
};

// Copies `terms` rows of `width` elements to rows of words. Fills up to `words` rows with zeros.
template <class Kind>
HWY_INLINE void CopyToWords(Matrix<const typename Kind::T> from, int64_t terms, int64_t width, int64_t words,
                            Matrix<float> to) {
  using T = typename Kind::T;
  const hn::RebindToUnsigned<D<float>> bits;
  for (int64_t t = 0; t < terms; t += Kind::kPerWord) {
    float* const row = to[t / Kind::kPerWord];
    ForEachVector<T>(width, [&](const auto& access, int64_t x) {
      V<float> word = access.Load(from[t] + x);
      if constexpr (Kind::kPerWord == 2) {
        const V<float> odd = t + 1 < terms ? access.Load(from[t + 1] + x) : hn::Zero(D<float>());
        word = hn::Or(hn::BitCast(D<float>(), hn::ShiftRight<16>(hn::BitCast(bits, word))), odd);
      }
      hn::StoreU(word, D<float>(), row + x);
    });
  }
  for (int64_t w = (terms + Kind::kPerWord - 1) / Kind::kPerWord; w < words; ++w) std::fill_n(to[w], width, 0.0f);
}

// Does the same with `width` rows of `terms` elements each: a word of the result is a word of such a row.
template <class Kind>
HWY_INLINE void TransposeToWords(Matrix<const typename Kind::T> from, int64_t terms, int64_t width, int64_t words,
                                 Matrix<float> to) {
  using T = typename Kind::T;
  if constexpr (Kind::kPerWord == 1) {
    CopyTransposed<T, float>(from, 0, width, terms, 1, to);
  } else {
    Transpose<float, float>(
        width, terms / 2, [&](int64_t i) { return reinterpret_cast<const float*>(from[i]); },
        [](const auto& access, const float* p) { return access.Load(p); }, to);
    if (terms % 2 != 0) {
      for (int64_t i = 0; i < width; ++i) {
        const BF16 word[] = {from[i][terms - 1], BF16()};
        std::memcpy(to[terms / 2] + i, word, sizeof word);
      }
    }
    for (int64_t w = (terms + 1) / 2; w < words; ++w) std::fill_n(to[w], width, 0.0f);
  }
}

// Computes one product in f32. A and B are copied just before they are needed. Memory that is needed later is
// prefetched in small portions between multiplications.
template <class Kind>
class Product {
  using T = typename Kind::T;

 public:
  Product(const GemmShape& shape, const T* a, const T* b, Matrix<float> c, const Space<Kind>& space)
      : shape_(shape), a_(a), b_(b), c_(c), space_(space), copies_a_(CopiesA<Kind>(shape)) {}

  void Run() const {
    for (int64_t k = 0; k < shape_.inner; k += Kind::kTerms) RunBlock(k, std::min(Kind::kTerms, shape_.inner - k));
  }

 private:
  // Returns the number of words that hold `terms` terms; with AMX, of whole tiles.
  static int64_t Words(int64_t terms) {
    return Kind::kAmx ? RoundUp(terms, 32) / 2 : (terms + Kind::kPerWord - 1) / Kind::kPerWord;
  }

  // Adds `terms` terms from `k` on.
  void RunBlock(int64_t k, int64_t terms) const {
    const bool small = shape_.rows * (shape_.inner + shape_.cols) + shape_.inner * shape_.cols <= kSmall;
    const int64_t groups = (shape_.rows + kRowsAtOnce - 1) / kRowsAtOnce;  // for each panel
    const int64_t next_k = k + terms, next_terms = std::min(Kind::kTerms, shape_.inner - next_k);
    Prefetcher next_a = shape_.transpose_a
                            ? Prefetcher(a_ + next_k * shape_.a_stride, shape_.a_stride, next_terms, shape_.rows)
                            : Prefetcher(a_ + next_k, shape_.a_stride, shape_.rows, next_terms);
    for (int64_t j = 0; j < shape_.cols; j += kWidth) {
      const int64_t cols = std::min(kWidth, shape_.cols - j), next_j = j + kWidth;
      Matrix<const float> panel = PanelOfB(j, cols, k, terms);
      Prefetcher next_b = next_j < shape_.cols ? PartOfB(next_j, k, terms) : PartOfB(0, next_k, next_terms);
      for (int64_t i = 0; i < shape_.rows; i += Kind::kRows) {
        const int64_t rows = std::min(Kind::kRows, shape_.rows - i);
        const bool copies = copies_a_ || (Kind::kAmx ? rows % 16 != 0 || terms % 32 != 0 : terms % Kind::kPerWord != 0);
        if (j == 0 && copies) CopyRowsOfA(i, rows, k, terms);
        const Factor<float> a = copies ? Factor<float>{space_.a + i * kRowOfA<Kind>, kRowOfA<Kind>, 1}
                                       : Factor<float>{reinterpret_cast<const float*>(a_ + i * shape_.a_stride + k),
                                                       shape_.a_stride / Kind::kPerWord, 1};
        const Matrix<float> c = {c_[i] + j, c_.stride};
        Multiply(a, &panel, c, rows, cols, Words(terms), (shape_.accumulate && !BuffersC<Kind>(shape_)) || k > 0,
                 [&](int64_t next) {
                   if (small) return;
                   next_a.PrefetchPart(groups * ((shape_.cols + kWidth - 1) / kWidth));
                   next_b.PrefetchPart(groups);
                   for (int64_t r = next; r < std::min(next + kRowsAtOnce, shape_.rows - i); ++r) {
                     for (int64_t x = 0; x < cols; x += 16) __builtin_prefetch(c[r] + x, /*rw=*/0, /*locality=*/2);
                   }
                 });
      }
    }
  }

  Prefetcher PartOfB(int64_t j, int64_t k, int64_t terms) const {
    const int64_t cols = shape_.packed_b ? 0 : std::min(kWidth, shape_.cols - j);  // packed: in the order of memory
    return shape_.transpose_b ? Prefetcher(b_ + j * shape_.b_stride + k, shape_.b_stride, cols, terms)
                              : Prefetcher(b_ + k * shape_.b_stride + j, shape_.b_stride, terms, cols);
  }

  void CopyRowsOfA(int64_t i, int64_t rows, int64_t k, int64_t terms) const {
    const Matrix<float> to = {space_.a + i * kRowOfA<Kind>, kRowOfA<Kind>};
    const T* const from = a_ + (shape_.transpose_a ? k * shape_.a_stride + i : i * shape_.a_stride + k);
    if constexpr (Kind::kPerWord == 2) {
      const int64_t words = Words(terms);
      if (shape_.transpose_a) {
        const Matrix<float> columns = {space_.columns, Kind::kRows};
        CopyToWords<Kind>({from, shape_.a_stride}, terms, rows, words, columns);
        Transpose<float, float>(
            words, rows, [&](int64_t w) { return columns[w]; },
            [](const auto& access, const float* p) { return access.Load(p); }, to);
        return;
      }
      for (int64_t r = 0; r < rows; ++r) {
        std::memcpy(to[r], from + r * shape_.a_stride, static_cast<size_t>(terms) * sizeof(T));
        std::memset(reinterpret_cast<T*>(to[r]) + terms, 0, static_cast<size_t>(2 * words - terms) * sizeof(T));
      }
    } else if (shape_.transpose_a) {
      CopyTransposed<T, float>({from, shape_.a_stride}, 0, terms, rows, 1, to);
    } else {
      for (int64_t r = 0; r < rows; ++r) ConvertArray(from + r * shape_.a_stride, to[r], terms);
    }
  }

  // Returns a panel of B, [kWords, kWidth]: a copy, a part of packed B, or a part of B where Multiply makes the copy.
  // Columns from `cols` on are undefined, and their products are never copied to C.
  Matrix<const float> PanelOfB(int64_t j, int64_t cols, int64_t k, int64_t terms) const {
    const Matrix<float> to = {space_.b, kWidth};
    if (shape_.packed_b) {
      const PanelShape panels = {.inner = shape_.inner, .cols = shape_.cols, .dtype = shape_.in};
      if constexpr (Kind::kPerWord == 2) return {reinterpret_cast<const float*>(b_ + panels.Offset(k, j)), kWidth};
      for (int64_t t = 0; t < terms; ++t) {  // only in tests: the compiler packs bf16 only if the CPU multiplies it
        for (int64_t x = 0; x < cols; ++x) to[t][x] = static_cast<float>(b_[panels.Offset(k + t, j + x)]);
      }
    } else if (shape_.transpose_b) {
      TransposeToWords<Kind>({b_ + j * shape_.b_stride + k, shape_.b_stride}, terms, cols, Words(terms), to);
    } else {
      if constexpr (std::is_same_v<Kind, F32>) {
        if (cols % kLanes == 0) return {b_ + k * shape_.b_stride + j, shape_.b_stride};
      }
      CopyToWords<Kind>({b_ + k * shape_.b_stride + j, shape_.b_stride}, terms, cols, Words(terms), to);
    }
    return {space_.b, kWidth};
  }

  // Multiplies rows of A by the panel of B, and calls `before` before each few of them. If the panel is a part of B
  // itself, and many rows follow, makes it a copy. Where C has no whole vectors or tiles, computes in a copy of it.
  template <class Before>
  void Multiply(Factor<float> a, Matrix<const float>* panel, Matrix<float> c, int64_t rows, int64_t cols, int64_t words,
                bool add, const Before& before) const {
    const bool whole = cols % kLanes == 0 && !(Kind::kAmx && rows % 16 != 0);
    const Matrix<float> to = whole ? c : Matrix<float>{space_.edge, kWidth};
    const auto copy = [&](Matrix<float> from, Matrix<float> into) {
      for (int64_t r = 0; r < rows; ++r) {
        ForEachVector<float>(
            cols, [&](const auto& access, int64_t x) { access.Store(access.Load(from[r] + x), into[r] + x); });
      }
    };
    if (!whole && add) copy(c, to);
    if constexpr (Kind::kAmx) {
      for (int64_t r = 0; r < rows; r += kRowsAtOnce) before(r + kRowsAtOnce);
      MultiplyAmx({a.data, a.row, panel->data, to.data, to.stride, (rows + 15) / 16, (cols + 15) / 16, words / 16},
                  add);
    } else if (std::is_same_v<Kind, F32> && panel->stride != kWidth && shape_.rows > kRowsInPlace) {
      HWY_NAMESPACE::Multiply<float, MultiplyAdd, true>(a, *panel, to, rows, cols, words, add, space_.b, before);
      *panel = {space_.b, kWidth};
    } else {
      HWY_NAMESPACE::Multiply<float, typename Kind::Step, false>(a, *panel, to, rows, RoundUp(cols, kLanes), words, add,
                                                                 nullptr, before);
    }
    if (!whole) copy(to, c);
  }

  const GemmShape& shape_;
  const T *const a_, *const b_;
  const Matrix<float> c_;
  const Space<Kind>& space_;
  const bool copies_a_;
};

template <class Kind>
void MultiplyBatch(const GemmShape& shape, const std::byte* a, const std::byte* b, std::byte* c, std::byte* workspace) {
  using T = typename Kind::T;
  std::optional<AmxTiles> tiles;
  if (Kind::kAmx) tiles.emplace();
  SpaceTaker taker = {workspace};
  const Space<Kind> space(shape, &taker);
  for (int64_t m = 0; m < shape.batch; ++m) {
    const T* const one_a = reinterpret_cast<const T*>(a) + m * shape.a_batch_stride;
    const T* const one_b = reinterpret_cast<const T*>(b) + m * shape.b_batch_stride;
    const bool buffers = BuffersC<Kind>(shape);
    float* const one_c = reinterpret_cast<float*>(c) + m * shape.c_batch_stride;
    Product<Kind>(shape, one_a, one_b,
                  buffers ? Matrix<float>{space.c, shape.cols} : Matrix<float>{one_c, shape.c_stride}, space)
        .Run();
    for (int64_t i = 0; i < shape.rows && buffers; ++i) {
      const float* const row = space.c + i * shape.cols;
      if (shape.out == kF32) {
        ForEachVector<float>(shape.cols, [&](const auto& access, int64_t j) {
          float* const to = one_c + i * shape.c_stride + j;
          access.Store(hn::Add(access.Load(to), access.Load(row + j)), to);
        });
      } else {
        ConvertArray(row, reinterpret_cast<BF16*>(c) + m * shape.c_batch_stride + i * shape.c_stride, shape.cols);
      }
    }
  }
}

// Calls f(kind) with the kind of the product.
template <class F>
void WithKind(const GemmShape& shape, F f) {
  if (shape.in == kF32) return f(F32());
#if HWY_TARGET <= HWY_AVX3
  if (HasAmx()) return f(TilesOfBF16());
  if (HasBF16Products()) return f(PairsOfBF16());
#endif
  f(WidenedBF16());
}

void Run(const GemmShape& shape, const std::byte* a, const std::byte* b, std::byte* c, std::byte* workspace) {
  WithKind(shape, [&](auto kind) { MultiplyBatch<decltype(kind)>(shape, a, b, c, workspace); });
}

size_t Workspace(const GemmShape& shape) {
  SpaceTaker taker;
  WithKind(shape, [&](auto kind) { Space<decltype(kind)>(shape, &taker); });
  return taker.used;
}
}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace weft
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weft {

HWY_EXPORT(Run);
HWY_EXPORT(Workspace);

size_t GemmWorkspace(const GemmShape& shape) { return HWY_DYNAMIC_DISPATCH(Workspace)(shape); }

void Gemm(const GemmShape& shape, const std::byte* a, const std::byte* b, std::byte* c, std::byte* workspace) {
  WEFT_CHECK(!(shape.accumulate && shape.out == kBF16) && !(shape.packed_b && shape.batch > 1));
  if (shape.rows == 0 || shape.cols == 0) return;
  if (shape.inner > 0) return HWY_DYNAMIC_DISPATCH(Run)(shape, a, b, c, workspace);
  const int64_t size = static_cast<int64_t>(SizeOf(shape.out));  // sums of no terms are 0
  for (int64_t m = 0; m < shape.batch && !shape.accumulate; ++m) {
    for (int64_t r = 0; r < shape.rows; ++r) {
      std::memset(c + (m * shape.c_batch_stride + r * shape.c_stride) * size, 0,
                  static_cast<size_t>(shape.cols * size));
    }
  }
}

void PlainGemm(const GemmShape& shape, const double* a, const double* b, double* c) {
  constexpr int64_t kBlock = 64;  // these rows of B' stay in the cache while all rows of A' are multiplied
  const int64_t a_row = shape.transpose_a ? 1 : shape.a_stride, a_col = shape.transpose_a ? shape.a_stride : 1;
  const int64_t b_row = shape.transpose_b ? 1 : shape.b_stride, b_col = shape.transpose_b ? shape.b_stride : 1;
  for (int64_t m = 0; m < shape.batch;
       ++m, a += shape.a_batch_stride, b += shape.b_batch_stride, c += shape.c_batch_stride) {
    for (int64_t i = 0; i < shape.rows && !shape.accumulate; ++i) std::fill_n(c + i * shape.c_stride, shape.cols, 0.0);
    for (int64_t begin = 0; begin < shape.inner; begin += kBlock) {
      const int64_t end = std::min(begin + kBlock, shape.inner);
      for (int64_t i = 0; i < shape.rows; ++i) {
        double* const row = c + i * shape.c_stride;
        for (int64_t k = begin; k < end; ++k) {
          const double factor = a[i * a_row + k * a_col];
          for (int64_t j = 0; j < shape.cols; ++j) row[j] += factor * b[k * b_row + j * b_col];
        }
      }
    }
  }
}

}  // namespace weft
#endif  // HWY_ONCE
