#include "weft/bench/schedule/policy_timer.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

// Returns given turns instead of measuring.
class MadeUp : public PolicyTimer {
 public:
  MadeUp(const Policy* policy, int threads, std::vector<Turn> turns)
      : PolicyTimer(policy, threads), turns_(std::move(turns)) {}

  absl::StatusOr<Turn> TakeTurn() override { return turns_[next_++]; }

 private:
  const std::vector<Turn> turns_;
  size_t next_ = 0;
};

Turn Worked(double seconds, double executed, double busy) {
  return {.seconds = seconds, .others = {{"executed", executed}, {"busy", busy}}};
}

TEST(PolicyTimerTest, RowsAreComparedWithSerial) {
  const auto serial = [](double seconds, double busy) {
    Turn turn = Worked(seconds, 10, busy);
    turn.others["path"] = busy / 4;
    return turn;
  };
  PolicyTimers timers;
  timers.push_back(std::make_unique<MadeUp>(&kSerial, 1, std::vector{serial(8, 7), serial(12, 9), serial(9, 8)}));
  timers.push_back(
      std::make_unique<MadeUp>(&kFifo, 2, std::vector{Worked(3, 10, 5), Worked(9, 10, 8), Worked(2, 10, 4)}));
  Rounds rounds(3);
  const auto rows = Measure(timers, &rounds, {.graph = "made up", .nodes = 10});
  ASSERT_TRUE(rows.ok());
  ASSERT_EQ(rows->size(), 2u);
  EXPECT_EQ((*rows)[0].makespan, 9);
  EXPECT_EQ((*rows)[0].speedup, 1);
  EXPECT_EQ((*rows)[0].bound_work, 7);
  const ScheduleRow& fifo = (*rows)[1];
  EXPECT_EQ(fifo.graph, "made up");
  EXPECT_EQ(fifo.policy, "fifo");
  EXPECT_EQ(fifo.makespan, 3);
  EXPECT_EQ(fifo.speedup, 3);
  EXPECT_EQ(fifo.busy, 5);
  EXPECT_EQ(fifo.bound_work, 3.5);
  EXPECT_EQ(fifo.bound_path, 1.75);
  EXPECT_EQ(fifo.executed, 10);
  EXPECT_FALSE(fifo.steals || fifo.first_node);
}

TEST(PolicyTimerTest, OneTurnThatMissedANodeIsEnough) {
  PolicyTimers timers;
  timers.push_back(
      std::make_unique<MadeUp>(&kSerial, 1, std::vector{Worked(1, 10, 1), Worked(1, 9, 1), Worked(1, 10, 1)}));
  Rounds rounds(3);
  const auto rows = Measure(timers, &rounds, {.nodes = 10});
  ASSERT_TRUE(rows.ok());
  EXPECT_EQ((*rows)[0].executed, 9);
}

TEST(PolicyTimerTest, ATurnOfASyntheticGraph) {
  ScheduleBuilder builder;
  for (uint32_t t = 0; t < 100; ++t) {
    builder.AddTask(1);
    if (t >= 50) builder.AddEdge(t - 50, t);
  }
  const Schedule schedule = std::move(builder).Build();
  const NodeWork none(0), some(1);
  for (const NodeWork* work : {&none, &some}) {
    for (const Policy* policy : {&kSerial, &kCriticalPath}) {
      SCOPED_TRACE(policy->name);
      SyntheticTimer timer(policy, policy == &kSerial ? 1 : 2, &schedule, /*path_nodes=*/2, work);
      const absl::StatusOr<Turn> turn = timer.TakeTurn();
      ASSERT_TRUE(turn.ok());
      const std::map<std::string, double>& others = turn->others;
      EXPECT_EQ(others.at("executed"), 100);
      EXPECT_GT(others.at("first_node"), 0);
      EXPECT_EQ(others.contains("steals"), policy == &kCriticalPath);
      EXPECT_EQ(others.contains("busy"), work == &some);
      EXPECT_EQ(others.contains("path"), work == &some && policy == &kSerial);
      if (others.contains("busy")) {
        EXPECT_LT(others.at("busy"), turn->seconds * timer.threads());
      }
      if (others.contains("path")) {
        EXPECT_NEAR(others.at("path"), others.at("busy") / 50, 1e-12);
      }
    }
  }
}

}  // namespace
}  // namespace weft
