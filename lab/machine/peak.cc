// The loops have one version for each vector instruction set. The widest set that the CPU has and that kernels may use
// runs.
#include "weft/lab/machine/peak.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "weft/base/arena.h"
#include "weft/ops/kernels/instruction_set.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace weft {
namespace {

const volatile float one = 1, tiny = 1e-30f;  // volatile, so that the compiler can't fold arithmetic or sums

// Each of these functions makes `rounds` rounds. A round adds to each of kRoundSums independent sums, numbers or
// vectors, by a multiply-add. Returns the number of operations: two for each multiply-add of numbers.
double PlainRounds(int64_t rounds) {
  float sums[kRoundSums];
  const float a = one, b = tiny;
  for (float& sum : sums) sum = one;
  for (int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
    for (float& sum : sums) sum = sum * a + b;
  }
  for (float sum : sums) Keep(sum);
  return 2.0 * kRoundSums * static_cast<double>(rounds);
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) double Avx2Rounds(int64_t rounds) {
  __m256 sums[kRoundSums];
  for (__m256& sum : sums) sum = _mm256_set1_ps(one);
  const __m256 a = _mm256_set1_ps(one), b = _mm256_set1_ps(tiny);
  for (int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
    for (__m256& sum : sums) sum = _mm256_fmadd_ps(sum, a, b);
  }
  for (const __m256& sum : sums) Keep(sum[0]);
  return 2.0 * 8 * kRoundSums * static_cast<double>(rounds);
}

__attribute__((target("avx512f"))) double Avx512Rounds(int64_t rounds) {
  __m512 sums[kRoundSums];
  for (__m512& sum : sums) sum = _mm512_set1_ps(one);
  const __m512 a = _mm512_set1_ps(one), b = _mm512_set1_ps(tiny);
  for (int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
    for (__m512& sum : sums) sum = _mm512_fmadd_ps(sum, a, b);
  }
  for (const __m512& sum : sums) Keep(sum[0]);
  return 2.0 * 16 * kRoundSums * static_cast<double>(rounds);
}
#endif

using Words = uint64_t __attribute__((vector_size(64)));

// Reads `n` words. If `ahead`, prefetches cache lines 24 KB ahead. On Zen 5, a single core then reads a third faster
// than without. On an Intel Xeon with AMX, it reads at a third of its speed.
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)  // the choice between clones precedes ThreadSanitizer's start
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

// Returns the words of each thread's part of an array.
size_t PortionOf(const Team& team, size_t bytes) {
  return std::max<size_t>(8, bytes / sizeof(Words) / static_cast<size_t>(team.threads()) / 8 * 8);
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

void Keep(float result) { [[maybe_unused]] volatile float kept = result; }

RoundsFunction F32Rounds() {
#if defined(__x86_64__)
  const InstructionSet limit = InstructionSetLimit();
  if (limit >= InstructionSet::kAvx512 && __builtin_cpu_supports("avx512f")) return Avx512Rounds;
  if (limit >= InstructionSet::kAvx2 && __builtin_cpu_supports("fma")) return Avx2Rounds;
#endif
  return PlainRounds;
}

TimedWork RunRounds(Team* team, RoundsFunction rounds, int64_t count) {
  std::vector<double> flops(static_cast<size_t>(team->threads()));
  const double time = team->Run([&](int t) { flops[t] = rounds(count); });
  return {std::accumulate(flops.begin(), flops.end(), 0.0), time};
}

TimedWork ReadArray(Team* team, const std::byte* array, size_t bytes) {
  const Words* const words = reinterpret_cast<const Words*>(array);
  const size_t portion = PortionOf(*team, bytes);
  std::vector<uint64_t> sums(static_cast<size_t>(team->threads()));
  const double time =
      team->Run([&](int t) { sums[t] = Read(words + portion * static_cast<size_t>(t), portion, /*ahead=*/false); });
  Keep(static_cast<float>(std::accumulate(sums.begin(), sums.end(), uint64_t{0})));
  return {static_cast<double>(portion * sizeof(Words) * sums.size()), time};
}

double BestRate(double seconds, const std::function<TimedWork()>& work) {
  double best = 0;
  const Clock::time_point start = Clock::now();
  do {
    const TimedWork done = work();
    best = std::max(best, done.amount / done.seconds);
  } while (SecondsSince(start) < seconds);
  return best;
}

double PeakF32(Team* team, double seconds) {
  return BestRate(seconds, [&] { return RunRounds(team, F32Rounds()); });
}

Bandwidth PeakBandwidth(Team* team, size_t array_bytes, double seconds) {
  const size_t portion = PortionOf(*team, array_bytes);
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
    return BestRate(duration, [&]() -> TimedWork {
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
  Keep(static_cast<float>(std::accumulate(sums.begin(), sums.end(), uint64_t{y[0][0]})));
  return bandwidth;
}

}  // namespace weft
