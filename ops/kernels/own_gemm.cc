// C is computed in panels of a few vectors of columns, from one block of terms after the other. The part of B that a
// panel needs is copied to the workspace, where it stays in the L1 cache while all rows of A are multiplied by it.
#include "weft/ops/kernels/own_gemm.h"

#include <algorithm>
#include <cstddef>
#include <type_traits>

#include "weft/core/status.h"
#include "weft/ops/kernels/pack.h"
#include "weft/ops/kernels/space.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/kernels/own_gemm.cc"
#include "hwy/foreach_target.h"
// These includes follow foreach_target.h, which includes this file once for each instruction set.
#include "hwy/highway.h"
#include "weft/ops/kernels/product-inl.h"

HWY_BEFORE_NAMESPACE();
namespace weft {
namespace HWY_NAMESPACE {
namespace {

constexpr int64_t kLanes = hn::MaxLanes(D<float>()), kWidth = kVectorsAtOnce * kLanes;  // columns of a panel
// Terms that are added before the sum is added to C. A copied panel of B, [kTerms, kWidth], takes 32 KB with AVX-512,
// 16 KB with AVX2, and less otherwise, so that it stays in the L1 cache.
constexpr int64_t kTerms = kWidth > 16 ? 128 : 256;
constexpr int64_t kRowOfA = kTerms + 16;          // elements; rows of a power of two would share sets of the cache
constexpr int64_t kRowsOfCall = 4 * kRowsAtOnce;  // rows that are multiplied between two prefetches

// Reports whether rows of A are copied. If they are close together, the kernel reads them where they are. Rows that are
// far apart share sets of the caches and need many pages.
bool CopiesA(const GemmShape& shape) {
  constexpr int64_t kFar = 512;  // elements
  return shape.transpose_a || shape.in == kBF16 || shape.a_stride > kFar;
}

// Arrays in the workspace. `rounded`: a product whose result is bf16, in f32.
struct Space {
  float *a, *b, *edge, *rounded;

  Space(const GemmShape& shape, SpaceTaker* space)
      : a(space->Take<float>(CopiesA(shape) ? (PaddedWidth(shape.rows) + kLanes) * kRowOfA : 0)),
        b(space->Take<float>(kTerms * kWidth)),
        edge(space->Take<float>(kRowsOfCall * kWidth)),
        rounded(space->Take<float>(shape.out == kBF16 ? shape.rows * shape.cols : 0)) {}
};

// Prefetches a part of a matrix to the L2 cache, one cache line after the other.
class Prefetcher {
 public:
  // `first`: first element of the part, which has `count` elements of each of `rows` rows.
  template <class T>
  Prefetcher(const T* first, int64_t stride, int64_t rows, int64_t count)
      : row_(reinterpret_cast<const std::byte*>(first)),
        stride_(stride * static_cast<int64_t>(sizeof(T))),
        bytes_(count * static_cast<int64_t>(sizeof(T))),
        rows_(bytes_ > 0 ? rows : 0) {}

  // Returns the number of lines for each of `calls` calls.
  int64_t Lines(int64_t calls) const { return (rows_ * ((bytes_ + kLine - 1) / kLine) + calls - 1) / calls; }
  void Prefetch(int64_t lines) {
    for (; rows_ > 0 && lines > 0; --lines) {
      __builtin_prefetch(row_ + at_, /*rw=*/0, /*locality=*/2);
      at_ += kLine;
      if (at_ < bytes_) continue;
      at_ = 0;
      row_ += stride_;
      --rows_;
    }
  }

 private:
  static constexpr int64_t kLine = 64;  // bytes

  const std::byte* row_;
  int64_t stride_, bytes_, rows_, at_ = 0;
};

// Computes one product in f32. A and B are copied just before they are needed. Memory that is needed later is
// prefetched between multiplications.
template <class T>
class Product {
 public:
  Product(const GemmShape& shape, const T* a, const T* b, Matrix<float> c, const Space& space)
      : shape_(shape), a_(a), b_(b), c_(c), space_(space), copies_a_(CopiesA(shape)) {}

  void Run() const {
    for (int64_t k = 0; k < shape_.inner; k += kTerms) RunBlock(k, std::min(kTerms, shape_.inner - k));
  }

 private:
  // Adds `terms` terms from `k` on.
  void RunBlock(int64_t k, int64_t terms) const {
    const int64_t calls = (shape_.rows + kRowsOfCall - 1) / kRowsOfCall;  // for each panel
    const int64_t next_k = k + terms, next_terms = std::min(kTerms, shape_.inner - next_k);
    Prefetcher next_a = PartOfA(0, shape_.rows, next_k, next_terms);
    const int64_t a_lines = next_a.Lines(calls * ((shape_.cols + kWidth - 1) / kWidth));
    for (int64_t j = 0; j < shape_.cols; j += kWidth) {
      const int64_t cols = std::min(kWidth, shape_.cols - j), next_j = j + kWidth;
      CopyPanelOfB(j, cols, k, terms);
      Prefetcher next_b = next_j < shape_.cols ? PartOfB(next_j, std::min(kWidth, shape_.cols - next_j), k, terms)
                                               : PartOfB(0, std::min(kWidth, shape_.cols), next_k, next_terms);
      const int64_t b_lines = next_b.Lines(calls);
      for (int64_t i = 0; i < shape_.rows; i += kRowsOfCall) {
        const int64_t rows = std::min(kRowsOfCall, shape_.rows - i);
        if (j == 0 && copies_a_) CopyRowsOfA(i, rows, k, terms);
        next_a.Prefetch(a_lines);
        next_b.Prefetch(b_lines);
        Multiply(i, rows, j, cols, k, terms, shape_.accumulate || k > 0);
      }
    }
  }

  Prefetcher PartOfA(int64_t i, int64_t rows, int64_t k, int64_t terms) const {
    return shape_.transpose_a ? Prefetcher(a_ + k * shape_.a_stride + i, shape_.a_stride, terms, rows)
                              : Prefetcher(a_ + i * shape_.a_stride + k, shape_.a_stride, rows, terms);
  }
  Prefetcher PartOfB(int64_t j, int64_t cols, int64_t k, int64_t terms) const {
    return shape_.transpose_b ? Prefetcher(b_ + j * shape_.b_stride + k, shape_.b_stride, cols, terms)
                              : Prefetcher(b_ + k * shape_.b_stride + j, shape_.b_stride, terms, cols);
  }

  void CopyRowsOfA(int64_t i, int64_t rows, int64_t k, int64_t terms) const {
    float* const to = space_.a + i * kRowOfA;
    if (shape_.transpose_a) {
      CopyTransposed<T, float>({a_ + i, shape_.a_stride}, k, terms, rows, 1, {to, kRowOfA});
    } else {
      for (int64_t r = 0; r < rows; ++r) ConvertArray(a_ + (i + r) * shape_.a_stride + k, to + r * kRowOfA, terms);
    }
  }

  // Copies a panel of B to [kTerms, kWidth]. Columns from `cols` on are undefined, and their products are never
  // copied to C.
  void CopyPanelOfB(int64_t j, int64_t cols, int64_t k, int64_t terms) const {
    const Matrix<float> to = {space_.b, kWidth};
    if (shape_.packed_b) {  // only in tests: the compiler packs bf16 only if the CPU multiplies it
      const PanelShape panels = {.inner = shape_.inner, .cols = shape_.cols, .dtype = shape_.in};
      for (int64_t t = 0; t < terms; ++t) {
        for (int64_t x = 0; x < cols; ++x) {
          to[t][x] = static_cast<float>(b_[panels.Offset(k + t, j + x)]);
        }
      }
    } else if (shape_.transpose_b) {
      CopyTransposed<T, float>({b_ + k, shape_.b_stride}, j, cols, terms, 1, to);
    } else if (cols == kWidth) {
      const T* from = b_ + k * shape_.b_stride + j;
      for (int64_t t = 0; t < terms; ++t, from += shape_.b_stride) {
        HWY_UNROLL(4)
        for (int64_t x = 0; x < kWidth; x += kLanes) {
          hn::Store(Full().Load(from + x), D<float>(), to[t] + x);
        }
      }
    } else {
      CopyRows<T, float>({b_ + j, shape_.b_stride}, k, terms, cols, to);
    }
  }

  // Multiplies rows of A by the panel of B.
  void Multiply(int64_t i, int64_t rows, int64_t j, int64_t cols, int64_t k, int64_t terms, bool add) const {
    Factor<float> a = {space_.a + i * kRowOfA, kRowOfA, 1};
    if constexpr (std::is_same_v<T, float>) {
      if (!copies_a_) a = {a_ + i * shape_.a_stride + k, shape_.a_stride, 1};
    }
    const Matrix<float> c = {c_[i] + j, c_.stride}, edge = {space_.edge, kWidth};
    if (cols % kLanes == 0) return HWY_NAMESPACE::Multiply<float>(a, {space_.b, kWidth}, c, rows, cols, terms, add);
    HWY_NAMESPACE::Multiply<float>(a, {space_.b, kWidth}, edge, rows, RoundUp(cols, kLanes), terms, false);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t x = 0; x < cols; ++x) {
        c[r][x] = add ? c[r][x] + edge[r][x] : edge[r][x];
      }
    }
  }

  const GemmShape& shape_;
  const T *const a_, *const b_;
  const Matrix<float> c_;
  const Space& space_;
  const bool copies_a_;
};

template <class T>
void MultiplyBatch(const GemmShape& shape, const std::byte* a, const std::byte* b, std::byte* c, std::byte* workspace) {
  SpaceTaker taker = {workspace};
  const Space space(shape, &taker);
  for (int64_t m = 0; m < shape.batch; ++m) {
    const T* const one_a = reinterpret_cast<const T*>(a) + m * shape.a_batch_stride;
    const T* const one_b = reinterpret_cast<const T*>(b) + m * shape.b_batch_stride;
    if (shape.out == kF32) {
      float* const one_c = reinterpret_cast<float*>(c) + m * shape.c_batch_stride;
      Product<T>(shape, one_a, one_b, {one_c, shape.c_stride}, space).Run();
      continue;
    }
    BF16* const one_c = reinterpret_cast<BF16*>(c) + m * shape.c_batch_stride;
    Product<T>(shape, one_a, one_b, {space.rounded, shape.cols}, space).Run();
    for (int64_t i = 0; i < shape.rows; ++i) {
      ConvertArray(space.rounded + i * shape.cols, one_c + i * shape.c_stride, shape.cols);
    }
  }
}

void Run(const GemmShape& shape, const std::byte* a, const std::byte* b, std::byte* c, std::byte* workspace) {
  shape.in == kBF16 ? MultiplyBatch<BF16>(shape, a, b, c, workspace) : MultiplyBatch<float>(shape, a, b, c, workspace);
}

size_t Workspace(const GemmShape& shape) {
  SpaceTaker taker;
  Space(shape, &taker);
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

void OwnGemm(const GemmShape& shape, const std::byte* a, const std::byte* b, std::byte* c, std::byte* workspace) {
  WEFT_CHECK(shape.inner > 0 && !(shape.accumulate && shape.out == kBF16));
  HWY_DYNAMIC_DISPATCH(Run)(shape, a, b, c, workspace);
}
size_t OwnGemmWorkspace(const GemmShape& shape) { return HWY_DYNAMIC_DISPATCH(Workspace)(shape); }

}  // namespace weft
#endif  // HWY_ONCE
