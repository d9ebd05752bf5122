#include "weft/bench/peak_bf16.h"

#include <algorithm>
#include <cstdint>

#include "weft/lab/machine/peak.h"
#include "weft/ops/kernels/instruction_set.h"
#include "weft/ops/kernels/product/amx.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace weft {

#if defined(__x86_64__)
namespace {

const volatile float one = 1, tiny = 1e-30f;  // volatile, so that the compiler cannot fold the arithmetic

// Makes `rounds` rounds. A round adds to each of kRoundSums independent sums.
__attribute__((target("avx512f,avx512bf16"))) double BF16Rounds(int64_t rounds) {
  __m512 sums[kRoundSums];
  for (__m512& sum : sums) sum = _mm512_set1_ps(one);
  const __m512bh a = _mm512_cvtne2ps_pbh(_mm512_set1_ps(one), _mm512_set1_ps(one));
  const __m512bh b = _mm512_cvtne2ps_pbh(_mm512_set1_ps(tiny), _mm512_set1_ps(tiny));
  for (int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
    for (__m512& sum : sums) sum = _mm512_dpbf16_ps(sum, a, b);
  }
  for (const __m512& sum : sums) Keep(sum[0]);
  return 2.0 * 32 * kRoundSums * static_cast<double>(rounds);
}

// Multiplies bf16 matrices with AMX. The matrices stay in the L1 cache. Makes about as many operations as BF16Rounds.
double AmxRounds(int64_t rounds) {
  constexpr int64_t kTerms = 6, kRows = 32, kCols = 64;
  constexpr int64_t kOperations = 4 * kRows * kCols * 16 * kTerms;  // of a product; a term is 16 pairs of numbers
  constexpr double kOfRound = 2.0 * 32 * kRoundSums;
  alignas(64) float a[kRows * 16 * kTerms] = {}, b[16 * kTerms * kCols] = {}, c[kRows * kCols];
  const AmxTiles tiles;
  const int64_t products = std::max<int64_t>(1, static_cast<int64_t>(kOfRound) * rounds / kOperations);
  for (int64_t i = 0; i < products; ++i) {
    MultiplyAmx(
        {.a = a, .a_stride = 16 * kTerms, .b = b, .c = c, .c_stride = kCols, .rows = 2, .cols = 4, .terms = kTerms},
        /*add=*/false);
  }
  Keep(c[0]);
  return static_cast<double>(products * kOperations);
}

}  // namespace
#endif

double PeakBF16([[maybe_unused]] Team* team, [[maybe_unused]] double seconds) {
#if defined(__x86_64__)
  if (HasBF16Products()) {
    return BestRate(seconds, [&] { return RunRounds(team, HasAmx() ? AmxRounds : BF16Rounds); });
  }
#endif
  return 0;
}

}  // namespace weft
