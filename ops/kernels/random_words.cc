#include "weft/ops/kernels/random_words.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/kernels/random_words.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h, which includes this file once for each instruction set.
#include "hwy/highway.h"
#include "weft/ops/kernels/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace weft {
namespace HWY_NAMESPACE {

// Philox4x32-10 with a block in each 64-bit lane. Only the lower halves count: MulEven reads nothing else.
void Words(const RandomStream& stream, uint64_t first, int64_t blocks, uint32_t* words) {
  int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<uint64_t> d;
  const hn::Repartition<uint32_t, decltype(d)> d32;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto factor_a = hn::Set(d32, 0xD2511F53u), factor_b = hn::Set(d32, 0xCD9E8D57u);
  for (; i + lanes <= blocks; i += lanes) {
    const auto counter = hn::Iota(d, first + static_cast<uint64_t>(i));
    auto c0 = counter, c1 = hn::ShiftRight<32>(counter);
    auto c2 = hn::Set(d, uint64_t{stream.step}), c3 = hn::Set(d, uint64_t{stream.stream});
    uint32_t key0 = static_cast<uint32_t>(stream.seed), key1 = static_cast<uint32_t>(stream.seed >> 32);
    for (int round = 0; round < 10; ++round) {
      const auto a = hn::MulEven(hn::BitCast(d32, c0), factor_a), b = hn::MulEven(hn::BitCast(d32, c2), factor_b);
      c0 = hn::Xor(hn::Xor(hn::ShiftRight<32>(b), c1), hn::Set(d, uint64_t{key0}));
      c2 = hn::Xor(hn::Xor(hn::ShiftRight<32>(a), c3), hn::Set(d, uint64_t{key1}));
      c1 = b;
      c3 = a;
      key0 += 0x9E3779B9;
      key1 += 0xBB67AE85;
    }
    const auto low = hn::Set(d, uint64_t{0xffffffff});
    HWY_ALIGN uint64_t pairs[2 * hn::MaxLanes(hn::ScalableTag<uint64_t>())];  // little-endian, as all that has AVX2
    hn::StoreInterleaved2(hn::Or(hn::And(c0, low), hn::ShiftLeft<32>(c1)),
                          hn::Or(hn::And(c2, low), hn::ShiftLeft<32>(c3)), d, pairs);
    std::memcpy(words + 4 * i, pairs, 2 * static_cast<size_t>(lanes) * sizeof(uint64_t));
  }
#endif
  for (; i < blocks; ++i) {
    const Philox4 block = stream.Block(first + static_cast<uint64_t>(i));
    std::copy(block.begin(), block.end(), words + 4 * i);
  }
}

template <class T>
void Keep(const uint32_t* words, uint32_t threshold, float scale, const T* x, T* y, int64_t n) {
  const D<T> d;
  const hn::RebindToSigned<D<T>> integers;
  const hn::RebindToUnsigned<D<T>> bits;
  const int64_t lanes = hn::Lanes(d);
  const auto below = hn::Set(integers, static_cast<int32_t>(threshold) - 1);
  const auto factor = hn::Set(d, scale);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto upper = hn::BitCast(integers, hn::ShiftRight<8>(hn::LoadU(bits, words + i)));
    const auto kept = hn::RebindMask(d, hn::Gt(upper, below));
    StoreLanes<T>(hn::IfThenElseZero(kept, hn::Mul(LoadLanes<T>(x + i), factor)), y + i);
  }
  for (; i < n; ++i) y[i] = (words[i] >> 8) >= threshold ? static_cast<T>(static_cast<float>(x[i]) * scale) : T{};
}

void KeepF32(const uint32_t* words, uint32_t threshold, float scale, const float* x, float* y, int64_t n) {
  Keep(words, threshold, scale, x, y, n);
}
void KeepBF16(const uint32_t* words, uint32_t threshold, float scale, const BF16* x, BF16* y, int64_t n) {
  Keep(words, threshold, scale, x, y, n);
}

}  // namespace HWY_NAMESPACE
}  // namespace weft
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weft {

HWY_EXPORT(Words);
HWY_EXPORT(KeepF32);
HWY_EXPORT(KeepBF16);

void RandomWords(const RandomStream& stream, uint64_t first, int64_t blocks, uint32_t* words) {
  HWY_DYNAMIC_DISPATCH(Words)(stream, first, blocks, words);
}

void KeepWhere(const uint32_t* words, uint32_t threshold, float scale, const float* x, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(KeepF32)(words, threshold, scale, x, y, n);
}
void KeepWhere(const uint32_t* words, uint32_t threshold, float scale, const BF16* x, BF16* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(KeepBF16)(words, threshold, scale, x, y, n);
}
void KeepWhere(const uint32_t* words, uint32_t threshold, double scale, const double* x, double* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = (words[i] >> 8) >= threshold ? x[i] * scale : 0;
}

}  // namespace weft
#endif  // HWY_ONCE
