// The loops have one version for each vector instruction set. The widest set that the CPU has and that kernels may use
// runs.
#include "weft/lab/machine/peak.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "weft/ops/kernels/instruction_set.h"
#include "weft/ops/kernels/product/amx.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace weft {
namespace {

constexpr int kSums = 12;  // independent sums: more than the latency of a multiply-add times those started per cycle
constexpr int64_t kRounds = 1'000'000;

const volatile float one = 1, tiny = 1e-30f;  // volatile, so that the compiler cannot fold the arithmetic
float Start() { return one; }                 // initial value of each sum; the compiler can't merge the sums
void Keep(float result) { [[maybe_unused]] volatile float kept = result; }

// Each of these functions makes `rounds` rounds. A round adds to each of kSums independent sums, numbers or vectors, by
// a multiply-add. Returns the number of operations: two for each multiply-add of numbers.
double PlainRounds(int64_t rounds) {
  float sums[kSums];
  const float a = one, b = tiny;
  for (float& sum : sums) sum = Start();
  for (int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
    for (float& sum : sums) sum = sum * a + b;
  }
  for (float sum : sums) Keep(sum);
  return 2.0 * kSums * static_cast<double>(rounds);
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) double Avx2Rounds(int64_t rounds) {
  __m256 sums[kSums];
  for (__m256& sum : sums) sum = _mm256_set1_ps(Start());
  const __m256 a = _mm256_set1_ps(one), b = _mm256_set1_ps(tiny);
  for (int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
    for (__m256& sum : sums) sum = _mm256_fmadd_ps(sum, a, b);
  }
  for (const __m256& sum : sums) Keep(sum[0]);
  return 2.0 * 8 * kSums * static_cast<double>(rounds);
}

__attribute__((target("avx512f"))) double Avx512Rounds(int64_t rounds) {
  __m512 sums[kSums];
  for (__m512& sum : sums) sum = _mm512_set1_ps(Start());
  const __m512 a = _mm512_set1_ps(one), b = _mm512_set1_ps(tiny);
  for (int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
    for (__m512& sum : sums) sum = _mm512_fmadd_ps(sum, a, b);
  }
  for (const __m512& sum : sums) Keep(sum[0]);
  return 2.0 * 16 * kSums * static_cast<double>(rounds);
}

__attribute__((target("avx512f,avx512bf16"))) double BF16Rounds(int64_t rounds) {
  __m512 sums[kSums];
  for (__m512& sum : sums) sum = _mm512_set1_ps(Start());
  const __m512bh a = _mm512_cvtne2ps_pbh(_mm512_set1_ps(one), _mm512_set1_ps(one));
  const __m512bh b = _mm512_cvtne2ps_pbh(_mm512_set1_ps(tiny), _mm512_set1_ps(tiny));
  for (int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
    for (__m512& sum : sums) sum = _mm512_dpbf16_ps(sum, a, b);
  }
  for (const __m512& sum : sums) Keep(sum[0]);
  return 2.0 * 32 * kSums * static_cast<double>(rounds);
}

// Multiplies bf16 matrices in the L1 cache with AMX. A round has as many operations as a round of BF16Rounds.
double AmxRounds(int64_t rounds) {
  constexpr int64_t kTerms = 6, kRows = 32, kCols = 64;
  constexpr int64_t kOperations = 4 * kRows * kCols * 16 * kTerms;  // of a product; a term is 16 pairs of numbers
  constexpr double kOfRound = 2.0 * 32 * kSums;
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
#endif

// The operations that a piece of work executed, or the bytes that it moved, and the seconds that it took.
struct Sample {
  double amount = 0, seconds = 0;
};

// Calls `work` again and again for `seconds`. Best returns the amount per second of the fastest call, and Mean that of
// all calls together.
template <class Work>
double Best(double seconds, Work work) {
  double best = 0;
  const Clock::time_point start = Clock::now();
  do {
    const Sample done = work();
    best = std::max(best, done.amount / done.seconds);
  } while (SecondsSince(start) < seconds);
  return best;
}
template <class Work>
double Mean(double seconds, Work work) {
  Sample sum;
  const Clock::time_point start = Clock::now();
  do {
    const Sample done = work();
    sum = {sum.amount + done.amount, sum.seconds + done.seconds};
  } while (SecondsSince(start) < seconds);
  return sum.amount / sum.seconds;
}

using RoundsFunction = double (*)(int64_t rounds);

// Returns the widest version for f32 that may run.
RoundsFunction F32Rounds() {
#if defined(__x86_64__)
  const InstructionSet limit = InstructionSetLimit();
  if (limit >= InstructionSet::kAvx512 && __builtin_cpu_supports("avx512f")) return Avx512Rounds;
  if (limit >= InstructionSet::kAvx2 && __builtin_cpu_supports("fma")) return Avx2Rounds;
#endif
  return PlainRounds;
}

Sample RunRounds(Team* team, RoundsFunction rounds, int64_t count) {
  std::vector<double> flops(static_cast<size_t>(team->threads()));
  const double time = team->Run([&](int t) { flops[t] = rounds(count); });
  return {std::accumulate(flops.begin(), flops.end(), 0.0), time};
}

using Words = uint64_t __attribute__((vector_size(64)));

// Reads `n` words. If `ahead`, prefetches cache lines 24 KB ahead. On Zen 5, a single core then reads a third faster
// than without. On an Intel Xeon with AMX, it reads at a third of its speed.
#if defined(__x86_64__)
__attribute__((target_clones("avx512f", "avx2", "default")))
#endif
uint64_t
Read(const Words* x, size_t n, bool ahead) {
  constexpr size_t kAhead = 384;  // cache lines
  Words sums[8] = {};
  for (size_t i = 0; i + 8 <= n; i += 8) {
    for (size_t k = 0; k < 8; ++k) {
      if (ahead) __builtin_prefetch(x + i + k + kAhead, /*rw=*/0, /*locality=*/0);
      sums[k] ^= x[i + k];
    }
  }
  Words sum = sums[0];
  for (size_t k = 1; k < 8; ++k) sum ^= sums[k];
  return sum[0] ^ sum[7];
}

void Write(Words* y, size_t n, uint64_t value) {
  const Words words = Words{} + value;
  for (size_t i = 0; i < n; ++i) y[i] = words;
}

void Copy(const Words* x, Words* y, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    y[i] = x[i];
    asm volatile("" ::: "memory");  // so that the loop does not become memcpy, which uses other stores
  }
}

}  // namespace

double PeakF32(Team* team, double seconds) {
  return Best(seconds, [&] { return RunRounds(team, F32Rounds(), kRounds); });
}

double PeakBF16([[maybe_unused]] Team* team, [[maybe_unused]] double seconds) {
#if defined(__x86_64__)
  if (HasBF16Products()) {
    return Best(seconds, [&] { return RunRounds(team, HasAmx() ? AmxRounds : BF16Rounds, kRounds); });
  }
#endif
  return 0;
}

Bandwidth PeakBandwidth(Team* team, size_t array_bytes, double seconds) {
  const size_t portion =
      std::max<size_t>(8, array_bytes / sizeof(Words) / static_cast<size_t>(team->threads()) / 8 * 8);
  const size_t n = portion * static_cast<size_t>(team->threads());
  Arena arena;  // its memory has huge pages, as weights have; with small pages, reading is slower by a fifth
  Words* const x = reinterpret_cast<Words*>(arena.Allocate(n * sizeof(Words)));
  Words* const y = reinterpret_cast<Words*>(arena.Allocate(n * sizeof(Words)));
  if (x == nullptr || y == nullptr) return {};
  std::fill_n(x, n, Words{} + 1);
  std::fill_n(y, n, Words{} + 2);
  std::vector<uint64_t> sums(static_cast<size_t>(team->threads()));
  const auto best = [&](double arrays, double duration, auto pass) {
    // Waking the threads takes time, so they make several passes each time: enough to process 32 MiB of array, but at
    // most 1000.
    const int passes = static_cast<int>(std::clamp<size_t>((size_t{32} << 20) / (n * sizeof(Words)), 1, 1000));
    return Best(duration, [&]() -> Sample {
      const double time = team->Run([&](int t) {
        for (int i = 0; i < passes; ++i) pass(t, portion * static_cast<size_t>(t));
      });
      return {passes * arrays * static_cast<double>(n * sizeof(Words)), time};
    });
  };
  Bandwidth bandwidth;
  for (const bool ahead : {false, true}) {
    const double read = best(1, seconds / 2, [&](int t, size_t begin) { sums[t] += Read(&x[begin], portion, ahead); });
    bandwidth.read = std::max(bandwidth.read, read);
  }
  bandwidth.write = best(1, seconds, [&](int, size_t begin) { Write(&y[begin], portion, 3); });
  bandwidth.copy = best(2, seconds, [&](int, size_t begin) { Copy(&x[begin], &y[begin], portion); });
  uint64_t sum = y[0][0];
  for (uint64_t s : sums) sum += s;
  Keep(static_cast<float>(sum));
  return bandwidth;
}

SpeedProbe::SpeedProbe(int threads) : team_(threads) {
  portion_ = kBytes / sizeof(Words) / static_cast<size_t>(threads) / 8 * 8;
  const size_t n = portion_ * static_cast<size_t>(threads);
  words_ = arena_.Allocate(n * sizeof(Words));
  if (words_ != nullptr) std::fill_n(reinterpret_cast<Words*>(words_), n, Words{} + 1);
}

SpeedProbe::Speed SpeedProbe::Measure() {
  // A core that was idle needs about 0.1 s of work until its clock and the memory's run at full speed.
  constexpr double kWarmUp = 0.15, kPieceSeconds = 0.01;
  constexpr int kPieces = 5;
  constexpr int64_t kFewRounds = 50'000;  // so that a call takes about a millisecond
  const size_t threads = static_cast<size_t>(team_.threads());
  const Words* const words = reinterpret_cast<const Words*>(words_);
  std::vector<uint64_t> sums(threads);
  const auto multiply = [&] { return RunRounds(&team_, F32Rounds(), kFewRounds); };
  const auto read = [&]() -> Sample {
    const double time =
        team_.Run([&](int t) { sums[t] += Read(words + portion_ * static_cast<size_t>(t), portion_, false); });
    return {static_cast<double>(portion_ * sizeof(Words) * threads), time};
  };
  const auto measure = [&](std::vector<double>* flops, std::vector<double>* reads) {
    flops->push_back(Mean(kPieceSeconds, multiply));
    if (words_ != nullptr) reads->push_back(Mean(kPieceSeconds, read));
  };
  std::vector<double> flops, reads;
  for (const Clock::time_point start = Clock::now(); SecondsSince(start) < kWarmUp;) measure(&flops, &reads);
  flops.clear(), reads.clear();
  for (int i = 0; i < kPieces; ++i) measure(&flops, &reads);
  Keep(static_cast<float>(std::accumulate(sums.begin(), sums.end(), uint64_t{0})));
  return {.flops = Median(std::move(flops)), .read = reads.empty() ? 0 : Median(std::move(reads))};
}

}  // namespace weft
