// MultiplyWeightRows (weight_rows.h) uses a struct for each format of weights. `Prepare` brings a row of a to the form
// that the products need. `Step` multiplies StepElements() elements of kCols rows of W by those of kRows rows of a, and
// adds the products to `sums`. `Rest` does the same for the elements at the end of the rows, which are fewer than a
// step takes. kMaxRows is the largest kRows for which the sums fit into registers. kPrefetchDistance is the number of
// bytes by which a single row of a prefetches W if it reads one row of W after the other, or 0 if the CPU's own
// prefetching is as fast.
#if defined(WEFT_OPS_KERNELS_WEIGHTS_WEIGHT_FORMATS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef WEFT_OPS_KERNELS_WEIGHTS_WEIGHT_FORMATS_INL_H_
#undef WEFT_OPS_KERNELS_WEIGHTS_WEIGHT_FORMATS_INL_H_
#else
#define WEFT_OPS_KERNELS_WEIGHTS_WEIGHT_FORMATS_INL_H_
#endif

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "hwy/highway.h"
#include "weft/ops/kernels/lanes-inl.h"
#include "weft/ops/kernels/weights/weight_rows.h"

HWY_BEFORE_NAMESPACE();
namespace weft {
namespace HWY_NAMESPACE {

// Vector registers on which kernels may rely: 32 with AVX-512, otherwise 16.
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
constexpr int kRegisters = 32;
#else
constexpr int kRegisters = 16;
#endif

// Begins to read the cache line at `bytes` into the L2 cache. Any address is allowed.
HWY_INLINE void Prefetch(const std::byte* bytes) { __builtin_prefetch(bytes, /*rw=*/0, /*locality=*/2); }

// Begins to read [rows, cols] elements, whose rows are `stride` elements apart, so that writing them does not wait. Any
// address is allowed.
HWY_INLINE void PrefetchOutput(float* y, int64_t rows, int64_t cols, int64_t stride) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t j = 0; j < cols; j += 16) __builtin_prefetch(y + r * stride + j, /*rw=*/1);
  }
}

// Returns `v`. If several columns use it, keeps the compiler from loading it again for each of them, because a CPU
// loads no more vectors in a cycle than it multiplies.
template <int kCols, class V>
HWY_INLINE V InRegister(V v) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
  if constexpr (kCols > 1) asm("" : "+v"(v.raw));
#endif
  return v;
}

// Calls function(i) for i = 0 .. kCount - 1, where i is a constant of the compiler. Arrays of sums that are indexed by
// such constants stay in registers, if the function is a lambda that is always inlined.
template <int kCount, class Function>
HWY_INLINE void Unrolled(const Function& function) {
  if constexpr (kCount > 0) {
    Unrolled<kCount - 1>(function);
    function(std::integral_constant<int, kCount - 1>());
  }
}

// Holds defaults. A format hides a default by a member of the same name. This Rest is for rows of whole steps.
template <DType kFormat>
struct AnyFormat {
  static constexpr DType kDType = kFormat;
  static constexpr int64_t kPrefetchDistance = 8 << 10;  // on Zen 5, 1 or 2 KB gain nothing, and 16 KB is no faster
  static int64_t RowBytes(int64_t inner) { return static_cast<int64_t>(BytesOf(kFormat, inner)); }
  template <int kCols, int kRows, class... Arguments>
  static HWY_INLINE void Rest(const Arguments&...) {}
};

// f32 and f16. A row of a is used as it is. A step has one vector of elements.
template <DType kFormat>
struct FloatFormat : AnyFormat<kFormat> {
  static constexpr int kMaxRows = kRegisters == 32 ? 6 : 2;
  static constexpr int64_t kPrefetchDistance = 0;
  using Prepared = float;
  using Sum = V<float>;
  static int64_t Stride(int64_t inner) { return inner; }
  static int64_t StepElements() { return static_cast<int64_t>(hn::Lanes(D<float>())); }

  template <int kCols, int kRows>
  static HWY_INLINE void Step(const std::byte* const* w, const float* a, int64_t stride, int64_t step,
                              Sum (&sums)[kCols][kRows]) {
    Add<kCols, kRows>(Full(), w, a, stride, step * StepElements(), sums);
  }
  template <int kCols, int kRows>
  static HWY_INLINE void Rest(const std::byte* const* w, const float* a, int64_t stride, int64_t inner,
                              Sum (&sums)[kCols][kRows]) {
    const int64_t k = inner / StepElements() * StepElements();
    if (k < inner) Add<kCols, kRows>(Partial{static_cast<size_t>(inner - k)}, w, a, stride, k, sums);
  }
  template <class Access>
  static HWY_INLINE V<float> Load(const Access& access, const std::byte* w, int64_t k) {
    if constexpr (kFormat == kF32) {
      return access.Load(reinterpret_cast<const float*>(w) + k);
    } else {
      const hn::Rebind<hwy::float16_t, D<float>> halves;
      const std::byte* from = w + 2 * k;
      alignas(16) std::byte last[2 * hn::MaxLanes(D<float>())] = {};
      if constexpr (std::is_same_v<Access, Partial>) {
        std::memcpy(last, from, 2 * access.n);
        from = last;
      }
      return hn::PromoteTo(D<float>(), hn::LoadU(halves, reinterpret_cast<const hwy::float16_t*>(from)));
    }
  }
  template <int kCols, int kRows, class Access>
  static HWY_INLINE void Add(const Access& access, const std::byte* const* w, const float* a, int64_t stride, int64_t k,
                             Sum (&sums)[kCols][kRows]) {
    V<float> x[kRows];
    Unrolled<kRows>([&](auto r) HWY_ATTR
                    __attribute__((always_inline)) { x[r] = InRegister<kCols>(access.Load(a + r * stride + k)); });
    Unrolled<kCols>([&](auto j) HWY_ATTR __attribute__((always_inline)) {
      const V<float> weights = Load(access, w[j], k);
      Unrolled<kRows>([&](auto r) HWY_ATTR
                      __attribute__((always_inline)) { sums[j][r] = hn::MulAdd(weights, x[r], sums[j][r]); });
    });
  }
};

// bf16. A 32-bit word holds two neighbours, so a step has a vector of words. A row of a is prepared as all elements
// with even index of a step, then all with odd index.
struct BF16Format : AnyFormat<kBF16> {
  static constexpr int kMaxRows = kRegisters == 32 ? 4 : 2;
  using Prepared = float;
  using Sum = V<float>;
  static int64_t Lanes() { return static_cast<int64_t>(hn::Lanes(D<float>())); }
  static int64_t StepElements() { return 2 * Lanes(); }
  static int64_t Stride(int64_t inner) { return (inner + StepElements() - 1) / StepElements() * StepElements(); }

  static void Prepare(const float* a, int64_t inner, float* to) {
    const D<float> d;
    V<float> even, odd;
    for (; inner >= StepElements(); inner -= StepElements(), a += StepElements(), to += StepElements()) {
      hn::LoadInterleaved2(d, a, even, odd);
      hn::StoreU(even, d, to);
      hn::StoreU(odd, d, to + Lanes());
    }
    if (inner == 0) return;
    for (int64_t i = 0; i < StepElements(); ++i) to[i % 2 * Lanes() + i / 2] = i < inner ? a[i] : 0;
  }
  // Multiplies a step that begins with the last elements of the rows, and ends with zeros.
  template <int kCols, int kRows>
  static HWY_INLINE void Rest(const std::byte* const* w, const float* a, int64_t stride, int64_t inner,
                              Sum (&sums)[kCols][kRows]) {
    const int64_t k = inner / StepElements() * StepElements();
    if (k == inner) return;
    uint16_t ends[kCols][2 * hn::MaxLanes(D<float>())] = {};
    const std::byte* rows[kCols];
    for (int j = 0; j < kCols; ++j) {
      std::memcpy(ends[j], w[j] + k * static_cast<int64_t>(sizeof(uint16_t)),
                  static_cast<size_t>(inner - k) * sizeof(uint16_t));
      rows[j] = reinterpret_cast<const std::byte*>(ends[j]);
    }
    Step<kCols, kRows>(rows, a + k, stride, 0, sums);
  }
  template <int kCols, int kRows>
  static HWY_INLINE void Step(const std::byte* const* w, const float* a, int64_t stride, int64_t step,
                              Sum (&sums)[kCols][kRows]) {
    const D<float> d;
    const hn::RebindToUnsigned<D<float>> d32;
    const int64_t k = step * 2 * Lanes();
    hn::Vec<hn::RebindToUnsigned<D<float>>> words[kCols];
    V<float> x[kRows];
    Unrolled<kRows>([&](auto r) HWY_ATTR
                    __attribute__((always_inline)) { x[r] = InRegister<kCols>(hn::LoadU(d, a + r * stride + k)); });
    Unrolled<kCols>([&](auto j) HWY_ATTR __attribute__((always_inline)) {
      words[j] = hn::LoadU(d32, reinterpret_cast<const uint32_t*>(w[j]) + step * Lanes());
      const V<float> even = hn::BitCast(d, hn::ShiftLeft<16>(words[j]));
      Unrolled<kRows>([&](auto r) HWY_ATTR
                      __attribute__((always_inline)) { sums[j][r] = hn::MulAdd(even, x[r], sums[j][r]); });
    });
    Unrolled<kRows>([&](auto r) HWY_ATTR __attribute__((always_inline)) {
      x[r] = InRegister<kCols>(hn::LoadU(d, a + r * stride + k + Lanes()));
    });
    Unrolled<kCols>([&](auto j) HWY_ATTR __attribute__((always_inline)) {
      const V<float> odd = hn::BitCast(d, hn::And(words[j], hn::Set(d32, 0xffff0000u)));
      Unrolled<kRows>([&](auto r) HWY_ATTR
                      __attribute__((always_inline)) { sums[j][r] = hn::MulAdd(odd, x[r], sums[j][r]); });
    });
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace weft
HWY_AFTER_NAMESPACE();

#endif  // per target
