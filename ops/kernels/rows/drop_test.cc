#include <string>
#include <vector>

#include "weft/ops/kernels/instruction_set_test.h"
#include "weft/ops/kernels/rows/rows.h"

namespace weft {
namespace {

// The definition in the header, one element at a time.
template <class T>
T DroppedOne(const RandomStream& random, uint64_t index, double rate, T x) {
  using W = Computed<T>;
  if (random.Uniform(index) < rate) return T{};
  return static_cast<T>(static_cast<W>(x) * static_cast<W>(1 / (1 - rate)));
}

template <class T>
void ExpectDropped(const RandomStream& random, uint64_t first, double rate, int64_t n, const std::string& row) {
  std::vector<T> x(n), y(n + 1, static_cast<T>(7));
  for (int64_t i = 0; i < n; ++i) x[i] = static_cast<T>(0.37 * static_cast<double>(i % 97) + 1);
  Selects<T>().drop(random, first, rate, x.data(), y.data(), n);
  EXPECT_EQ(static_cast<double>(y[n]), 7) << "written behind the end; " << row;
  Selects<T>().drop(random, first, rate, x.data(), x.data(), 0);
  for (int64_t i = 0; i < n; ++i) {
    const T wanted = DroppedOne(random, first + static_cast<uint64_t>(i), rate, x[i]);
    ASSERT_EQ(static_cast<double>(y[i]), static_cast<double>(wanted)) << "element " << i << "; " << row;
  }
  Selects<T>().drop(random, first, rate, x.data(), x.data(), n);
  for (int64_t i = 0; i < n; ++i)
    ASSERT_EQ(static_cast<double>(x[i]), static_cast<double>(y[i])) << "in place; " << row;
}

struct Row {
  const char* what;
  RandomStream random;
  uint64_t first;
  double rate;
};
constexpr RandomStream kRandom = {.seed = 0x299f31d0a4093822, .stream = 0x03707344, .step = 0x13198a2e};
constexpr Row kRows[] = {
    {"zeros everywhere", {}, 0, 0.5},
    {"a block's beginning", kRandom, 4, 0.1},
    {"inside of a block", kRandom, 7, 0.1},
    {"the counter's upper half changes", kRandom, (uint64_t{1} << 34) - 37, 0.5},
    {"a rate of 0 keeps all", kRandom, 0, 0},
    {"a rate near 1", kRandom, 1, 0.9999},
    {"a rate that rounds to 1 drops all", kRandom, 0, 1 - 0x1p-40},
    {"a rate between two of the numbers drawn", kRandom, 0, 0x1.000001p-1},
};
constexpr int64_t kSizes[] = {0, 1, 3, 31, 32, 33, 64, 65, 1001};

using DropTest = InstructionSetTest;

TEST_P(DropTest, KeepsWhatTheStreamSays) {
  for (const auto& [what, random, first, rate] : kRows) {
    for (const int64_t n : kSizes) {
      const std::string row = std::string(what) + ", " + std::to_string(n);
      ExpectDropped<float>(random, first, rate, n, row + " of f32");
      ExpectDropped<double>(random, first, rate, n, row + " of f64");
      ExpectDropped<BF16>(random, first, rate, n, row + " of bf16");
    }
  }
}

// The number of blocks in a vector differs between CPUs.
INSTANTIATE_TEST_SUITE_P(InstructionSets, DropTest, InstructionSets(), InstructionSetName);

}  // namespace
}  // namespace weft
