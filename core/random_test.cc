#include "weft/core/random.h"

#include <cstdint>

#include "gtest/gtest.h"

namespace weft {
namespace {

// The known-answer vectors of Random123 for philox4x32 with 10 rounds.
TEST(PhiloxTest, KnownAnswers) {
  EXPECT_EQ(Philox({0, 0, 0, 0}, {0, 0}), (Philox4{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}), (Philox4{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Philox4{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RandomStreamTest, WordsAreThoseOfTheBlocks) {
  const RandomStream random = {.seed = 0x299f31d0a4093822, .stream = 0x03707344, .step = 0x13198a2e};
  const uint64_t block = 0x85a308d3243f6a88;
  EXPECT_EQ(random.Block(block), (Philox4{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
  EXPECT_EQ(random.Word(6), random.Block(1)[2]);
}

TEST(RandomStreamTest, SeedStreamStepAndIndexAllCount) {
  const RandomStream random = {.seed = 1, .stream = 2, .step = 3};
  EXPECT_NE(random.Word(0), (RandomStream{.seed = 2, .stream = 2, .step = 3}).Word(0));
  EXPECT_NE(random.Word(0), (RandomStream{.seed = 1, .stream = 3, .step = 3}).Word(0));
  EXPECT_NE(random.Word(0), (RandomStream{.seed = 1, .stream = 2, .step = 4}).Word(0));
  EXPECT_NE(random.Word(0), random.Word(1));
}

TEST(RandomStreamTest, UniformCoversTheUnitInterval) {
  const RandomStream random = {.seed = 7};
  constexpr int kDraws = 100'000;
  double sum = 0, squares = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double u = random.Uniform(i);
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    sum += u;
    squares += u * u;
  }
  EXPECT_NEAR(sum / kDraws, 0.5, 0.005);
  EXPECT_NEAR(squares / kDraws, 1.0 / 3, 0.005);
}

TEST(RandomStreamTest, BelowIsEven) {
  const RandomStream random = {.seed = 7};
  constexpr int kDraws = 100'000, kSides = 5;
  int counts[kSides] = {};
  for (int i = 0; i < kDraws; ++i) {
    const uint64_t side = random.Below(kSides, i);
    ASSERT_LT(side, kSides);
    ++counts[side];
  }
  for (const int count : counts) EXPECT_NEAR(count, kDraws / kSides, 600);  // 4.7 deviations
}

TEST(StableHashTest, TellsNamesApart) {
  EXPECT_EQ(StableHash("wte.weight"), StableHash("wte.weight"));
  EXPECT_NE(StableHash("wte.weight"), StableHash("wpe.weight"));
  EXPECT_NE(StableHash(""), StableHash("a"));
}

}  // namespace
}  // namespace weft
