#include "weft/distributed/ranks.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "weft/distributed/in_process.h"
#include "weft/graph/run/transport.h"

namespace weft {
namespace {

class Sizes : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Sizes, testing::Values(1, 2, 3, 5, 8));

TEST_P(Sizes, GatherBytesOfAnyLength) {
  const int size = GetParam();
  for (const size_t scale : {size_t{0}, size_t{1}, size_t{3000}}) {
    std::vector<std::string> wanted(size);
    for (int r = 0; r < size; ++r) wanted[r] = std::string(scale * ((r * 5 + 3) % 7), static_cast<char>('a' + r));
    RunRanks(size, [&](Transport* transport) {
      const Ranks ranks(transport);
      EXPECT_EQ(ranks.rank(), transport->rank());
      EXPECT_EQ(ranks.size(), size);
      EXPECT_EQ(ranks.first(), transport->rank() == 0);
      EXPECT_EQ(ranks.AllGather(wanted[ranks.rank()]), wanted);
      EXPECT_EQ(ranks.AllGather(wanted[ranks.rank()]), wanted);
    });
  }
}

TEST_P(Sizes, WaitForEachOther) {
  const int size = GetParam();
  std::atomic<int> arrived = 0;
  RunRanks(size, [&](Transport* transport) {
    const Ranks ranks(transport);
    for (int round = 1; round <= 5; ++round) {
      if (ranks.rank() == round % size) std::this_thread::sleep_for(std::chrono::milliseconds(10));
      ++arrived;
      ranks.AllGather("");
      EXPECT_GE(arrived, round * size);
    }
  });
}

TEST_P(Sizes, AgreeOnAValue) {
  RunRanks(GetParam(), [](Transport* transport) {
    const Ranks ranks(transport);
    EXPECT_TRUE(ranks.CheckEqual("seed", "7").ok());
    EXPECT_TRUE(ranks.CheckEqual("seed", "").ok());
  });
}

TEST_P(Sizes, NameTheFirstRankThatDiffers) {
  const int size = GetParam();
  if (size == 1) return;
  RunRanks(size, [&](Transport* transport) {
    const Ranks ranks(transport);
    for (int odd = 1; odd < size; ++odd) {
      const absl::Status status = ranks.CheckEqual("seed", ranks.rank() < odd ? "7" : absl::StrCat("1", ranks.rank()));
      EXPECT_EQ(status, absl::FailedPreconditionError(
                            absl::StrCat("the ranks differ in seed: rank 0 has 7, rank ", odd, " has 1", odd)));
    }
    const absl::Status status = ranks.CheckEqual("seed", ranks.rank() == 0 ? "7" : "8");
    EXPECT_EQ(status, absl::FailedPreconditionError("the ranks differ in seed: rank 0 has 7, rank 1 has 8"));
  });
}

TEST(Ranks, OfOneProcessDoNotWait) {
  const Ranks ranks;
  EXPECT_EQ(ranks.rank(), 0);
  EXPECT_EQ(ranks.size(), 1);
  EXPECT_TRUE(ranks.first());
  EXPECT_EQ(ranks.transport(), nullptr);
  EXPECT_EQ(ranks.AllGather("x"), std::vector<std::string>{"x"});
  EXPECT_TRUE(ranks.CheckEqual("seed", "7").ok());
}

}  // namespace
}  // namespace weft
