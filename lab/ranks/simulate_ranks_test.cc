#include "weft/lab/ranks/simulate_ranks.h"

#include <gtest/gtest.h>

#include <utility>

namespace weft {
namespace {

const SimulatedMachine kMachine = {.workers = 1, .task_seconds = 0};
const Network kSlow = {.latency_seconds = 1, .bytes_per_second = 1};  // a byte a second

// A rank that computes for `first` seconds, then exchanges 4 bytes with `peer` while it computes for `beside` seconds,
// and then computes for one second.
class Exchange {
 public:
  Exchange(int rank, int peer, double first, double beside) {
    ScheduleBuilder builder;
    for (const double seconds : {first, 0.0, 0.0, beside, 1.0}) {
      builder.AddTask(seconds);
      costs_.push_back({.seconds = seconds});
    }
    for (const uint32_t task : {1, 2, 3}) {
      builder.AddEdge(0, task);
      builder.AddEdge(task, 4);
    }
    schedule_ = std::move(builder).Build();
    schedule_.ends_later = {false, true, true, false, false};
    rank_ = {.rank = rank,
             .schedule = &schedule_,
             .costs = costs_,
             .messages = {{.task = 1, .sends = true, .peer = peer, .tag = 5, .bytes = 4},
                          {.task = 2, .sends = false, .peer = peer, .tag = 5, .bytes = 4}}};
  }
  const SimulatedRank& rank() const { return rank_; }

 private:
  Schedule schedule_;
  std::vector<TaskCost> costs_;
  SimulatedRank rank_;
};

TEST(SimulateRanksTest, AMessageTakesLatencyAndBytesAndHidesBehindKernels) {
  const Exchange a(0, 1, 2, 3), b(1, 0, 2, 3);
  // Both directions at once: 2 + (4 + 1) + 1 seconds. Kernels run in 3 of the 5 seconds.
  for (const auto& ranks : {std::vector{a.rank(), b.rank()}, std::vector{a.rank()}, std::vector{b.rank()}}) {
    const RanksSimulation simulation = SimulateRanks(ranks, kSlow, kCriticalPath, kMachine);
    EXPECT_DOUBLE_EQ(simulation.makespan, 8) << ranks.size();
    EXPECT_DOUBLE_EQ(simulation.communication, 5) << ranks.size();
    EXPECT_DOUBLE_EQ(simulation.hidden, 3) << ranks.size();
  }
}

TEST(SimulateRanksTest, AReceiveWaitsForTheSendOfASlowerRank) {
  const Exchange fast(0, 1, 2, 0), slow(1, 0, 10, 0);
  const RanksSimulation simulation = SimulateRanks({fast.rank(), slow.rank()}, kSlow, kCriticalPath, kMachine);
  EXPECT_DOUBLE_EQ(simulation.makespan, 16);
  // A mirror image of the fast rank is as fast.
  EXPECT_DOUBLE_EQ(SimulateRanks({fast.rank()}, kSlow, kCriticalPath, kMachine).makespan, 8);
}

// Rank 0 sends 3 messages at once, to two other ranks.
TEST(SimulateRanksTest, MessagesOfALinkFollowEachOther) {
  ScheduleBuilder builder;
  for (int i = 0; i < 3; ++i) builder.AddTask(0);
  Schedule schedule = std::move(builder).Build();
  schedule.ends_later = {true, true, true};
  const std::vector<TaskCost> costs(3);
  SimulatedRank rank = {.rank = 0, .schedule = &schedule, .costs = costs};
  for (uint32_t task = 0; task < 3; ++task) {
    rank.messages.push_back(
        {.task = task, .sends = true, .peer = task == 0 ? 1 : 4, .tag = static_cast<int>(task), .bytes = 4});
  }
  EXPECT_DOUBLE_EQ(SimulateRanks({rank}, kSlow, kCriticalPath, kMachine).makespan, 12);
  Network tree = kSlow;
  tree.ranks_per_switch = 4;
  tree.oversubscription = 2;
  EXPECT_DOUBLE_EQ(SimulateRanks({rank}, tree, kCriticalPath, kMachine).makespan, 4 + 8 + 8);
}

}  // namespace
}  // namespace weft
