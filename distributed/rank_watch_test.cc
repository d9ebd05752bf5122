#include "weft/distributed/rank_watch.h"

#include <chrono>
#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/distributed/communicator.h"
#include "weft/distributed/in_process.h"

namespace weft {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

constexpr double kTimeout = 80;  // a heartbeat every 10 s

// Ranks on a simulated clock. A test sets the time in seconds, so it never waits.
class Ring {
 public:
  explicit Ring(int size, double timeout = kTimeout) : network_(size) {
    for (int rank = 0; rank < size; ++rank) {
      ranks_.push_back({.communicator = network_.Connect(rank)});
      ranks_.back().watch = std::make_unique<RankWatch>(ranks_.back().communicator.get(), timeout);
    }
  }

  RankWatch& operator[](int rank) { return *ranks_[rank].watch; }
  bool aborted() const { return network_.exit_code().has_value(); }

  // Lets `ranks` tick and poll at time `now`, in seconds. Rank `waiting` has waited for a message since `since`.
  void Tick(int now, const std::vector<int>& ranks, int waiting = -1, int since = 0) {
    const RankWatch::Clock::time_point time(seconds{now});
    // A byte takes two polls: the receiver's poll copies it, and then the sender's poll reports it.
    for (int poll = 0; poll < 2; ++poll) {
      for (const int rank : ranks) {
        const RankWatch::Clock::time_point waiting_since(seconds{rank == waiting ? since : now});
        if (!ranks_[rank].watch->Tick(time, waiting_since)) return;
      }
      for (const int rank : ranks) {
        std::vector<Communicator::Request> ended;
        ranks_[rank].communicator->Progress(&ended);
        for (const Communicator::Request request : ended) EXPECT_TRUE(ranks_[rank].watch->Ended(request, time));
      }
    }
  }

  // Ticks every 5 s from `begin` to `end`. Returns the time of the first abort, or -1.
  int TickUntil(int begin, int end, const std::vector<int>& ranks, int waiting = -1, int since = 0) {
    for (int now = begin; now <= end; now += 5) {
      Tick(now, ranks, waiting, since);
      if (aborted()) return now;
    }
    return -1;
  }

 private:
  struct Rank {
    std::unique_ptr<Communicator> communicator;
    std::unique_ptr<RankWatch> watch;
  };
  InProcessNetwork network_;
  std::vector<Rank> ranks_;
};

TEST(RankWatch, LetsLiveRanksGoOn) {
  Ring ring(3);
  EXPECT_EQ(ring.TickUntil(0, 1000, {0, 1, 2}), -1);
  EXPECT_FALSE(ring[0].finished());
}

TEST(RankWatch, AbortsAfterTheTimeout) {
  Ring ring(3);
  EXPECT_EQ(ring.TickUntil(0, 200, {0, 1, 2}), -1);
  testing::internal::CaptureStderr();
  EXPECT_EQ(ring.TickUntil(205, 1000, {0, 2}), 285);  // rank 1 was last heard at 200
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "weft: rank 1 has not answered for 80 s; ending all ranks\n");
}

TEST(RankWatch, BlamesNoRankForTimeInWhichItsOwnProcessWasStopped) {
  Ring ring(2);
  EXPECT_EQ(ring.TickUntil(0, 100, {0, 1}), -1);
  // Both are stopped for long. Rank 0 is continued first.
  EXPECT_EQ(ring.TickUntil(5000, 5060, {0}), -1);
  EXPECT_EQ(ring.TickUntil(5065, 6000, {0, 1}), -1);
}

TEST(RankWatch, FinishesAfterBothGoodbyes) {
  Ring ring(3);
  EXPECT_EQ(ring.TickUntil(0, 50, {0, 1, 2}), -1);
  ring[0].SayGoodbye();
  EXPECT_EQ(ring.TickUntil(55, 500, {0, 1, 2}), -1);
  EXPECT_FALSE(ring[0].finished());  // rank 2 has not said goodbye
  ring[2].SayGoodbye();
  EXPECT_EQ(ring.TickUntil(505, 510, {0, 1, 2}), -1);
  EXPECT_TRUE(ring[0].finished());
  EXPECT_FALSE(ring[2].finished());
  EXPECT_EQ(ring.TickUntil(515, 1000, {1, 2}), -1);  // rank 0 has ended, and its silence is right
  ring[1].SayGoodbye();
  ring.Tick(1005, {1, 2});
  EXPECT_TRUE(ring[1].finished());
  EXPECT_TRUE(ring[2].finished());
  EXPECT_FALSE(ring.aborted());
}

TEST(RankWatch, WatchesTheOthersAfterItsGoodbye) {
  Ring ring(2);
  ring[0].SayGoodbye();
  EXPECT_EQ(ring.TickUntil(0, 100, {0, 1}), -1);
  testing::internal::CaptureStderr();
  EXPECT_EQ(ring.TickUntil(105, 1000, {0}), 185);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("rank 1 has not answered"));
}

TEST(RankWatch, AbortsIfARankWaitsForOthersThatHaveEnded) {
  Ring ring(2);
  ring[0].SayGoodbye();
  ring.Tick(0, {0, 1});
  testing::internal::CaptureStderr();
  EXPECT_EQ(ring.TickUntil(5, 1000, {0, 1}, /*waiting=*/1, /*since=*/20), 105);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "weft: rank 0 has ended, but rank 1 has waited for messages for 80 s; ending all ranks\n");
}

// 1e10 s are more nanoseconds than the clock can count.
TEST(RankWatch, LongTimeoutsDoNotWrap) {
  Ring ring(2, /*timeout=*/1e10);
  EXPECT_EQ(ring.TickUntil(0, 1000, {0}), -1);
  EXPECT_GT(ring[0].period(), std::chrono::hours(24 * 365));
}

TEST(RankWatch, HasNothingToDoWithoutATimeoutOrAnotherRank) {
  Ring alone(1), without(2, /*timeout=*/0);
  for (Ring* ring : {&alone, &without}) {
    EXPECT_EQ((*ring)[0].period(), RankWatch::Clock::duration::zero());
    EXPECT_EQ(ring->TickUntil(0, 1000, {0}), -1);
    EXPECT_TRUE((*ring)[0].finished());
  }
}

}  // namespace
}  // namespace weft
