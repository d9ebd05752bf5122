#include "weft/lab/simulate.h"

#include <cmath>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/random.h"

namespace weft {
namespace {

// Builds a schedule of tasks with these durations and edges (before, after).
Schedule Build(const std::vector<double>& seconds, const std::vector<std::pair<uint32_t, uint32_t>>& edges) {
  ScheduleBuilder builder;
  for (double s : seconds) builder.AddTask(s);
  for (const auto& [before, after] : edges) builder.AddEdge(before, after);
  return std::move(builder).Build();
}

std::vector<TaskCost> Costs(const std::vector<double>& seconds) {
  std::vector<TaskCost> costs;
  for (double s : seconds) costs.push_back({.seconds = s});
  return costs;
}

SimulatedMachine Machine(int workers) { return {.workers = workers, .task_seconds = 0}; }

TEST(SimulateTest, ChainsTakeTheirSumAndIndependentTasksShare) {
  const std::vector<double> seconds = {1, 2, 3, 4};
  const Schedule chain = Build(seconds, {{0, 1}, {1, 2}, {2, 3}}), apart = Build(seconds, {});
  for (const Policy* policy : Policies()) {
    SCOPED_TRACE(policy->name);
    for (int workers : {1, 2, 8}) {
      EXPECT_DOUBLE_EQ(Simulate(chain, Costs(seconds), *policy, Machine(workers)).makespan, 10);
      EXPECT_DOUBLE_EQ(Simulate(apart, Costs(seconds), *policy, Machine(workers)).busy, 10);
    }
    EXPECT_DOUBLE_EQ(Simulate(apart, Costs(seconds), *policy, Machine(1)).utilization, 1);
    EXPECT_DOUBLE_EQ(Simulate(apart, Costs(seconds), *policy, Machine(4)).makespan, policy == &kSerial ? 10 : 4);
  }
  EXPECT_DOUBLE_EQ(FindCriticalPath(chain, seconds).seconds, 10);
  EXPECT_THAT(FindCriticalPath(chain, seconds).tasks, testing::ElementsAre(0, 1, 2, 3));
  EXPECT_DOUBLE_EQ(FindCriticalPath(apart, seconds).seconds, 4);
  EXPECT_THAT(FindCriticalPath(apart, seconds).tasks, testing::ElementsAre(3));
}

// A long chain beside many short tasks: starting the chain late lengthens the execution.
TEST(SimulateTest, PoliciesDiffer) {
  std::vector<double> seconds(11, 1);
  for (int i = 0; i < 5; ++i) seconds.push_back(2);
  std::vector<std::pair<uint32_t, uint32_t>> edges;
  for (uint32_t t = 1; t < seconds.size(); ++t) edges.push_back({t > 11 ? t - 1 : 0, t});
  const Schedule schedule = Build(seconds, edges);
  const auto makespan = [&](const Policy& policy) {
    return Simulate(schedule, Costs(seconds), policy, Machine(2)).makespan;
  };
  EXPECT_DOUBLE_EQ(FindCriticalPath(schedule, seconds).seconds, 11);
  EXPECT_DOUBLE_EQ(makespan(kSerial), 21);
  EXPECT_DOUBLE_EQ(makespan(kCriticalPath), 11);  // 1, then 5 times 2 beside ten of 1
  EXPECT_GT(makespan(kLevel), 14);                // the barriers leave one worker idle for most of the chain
}

TEST(SimulateTest, TasksThatWantMoreThanTheMemoryGivesWaitForEachOther) {
  const Schedule schedule = Build({1, 1}, {});
  const std::vector<TaskCost> costs = {{.seconds = 1, .bytes = 10}, {.seconds = 1, .bytes = 10}};
  SimulatedMachine machine = {.workers = 2, .task_seconds = 0, .worker_bandwidth = 10, .bandwidth = 20};
  EXPECT_DOUBLE_EQ(Simulate(schedule, costs, kFifo, machine).makespan, 1);
  machine.bandwidth = 10;
  EXPECT_NEAR(Simulate(schedule, costs, kFifo, machine).makespan, 2, 1e-6);
  machine.worker_bandwidth = 20;  // half of each task's time is waiting
  EXPECT_NEAR(Simulate(schedule, costs, kFifo, machine).makespan, 2, 1e-6);
}

TEST(SimulateTest, ATaskCostsWhatItTakesToBegin) {
  const Schedule schedule = Build({1, 1, 1}, {{0, 1}, {1, 2}});
  EXPECT_DOUBLE_EQ(Simulate(schedule, Costs({1, 1, 1}), kLifo, {.workers = 2, .task_seconds = 0.5}).makespan, 4.5);
}

// One task of 8 seconds in 4 parts, beside one of 1 second and before one of 1 second.
TEST(SimulateTest, IdleWorkersShareATaskThatHasParts) {
  ScheduleBuilder builder;
  builder.AddTask(8, /*ends_later=*/false, /*parts=*/4);
  builder.AddTask(1);
  builder.AddTask(1);
  builder.AddEdge(0, 2);
  const Schedule schedule = std::move(builder).Build();
  const std::vector<TaskCost> costs = Costs({8, 1, 1});
  const auto makespan = [&](const Policy& policy, int workers) {
    const Simulation simulation = Simulate(schedule, costs, policy, Machine(workers));
    EXPECT_DOUBLE_EQ(simulation.busy, 10);
    return simulation.makespan;
  };
  EXPECT_DOUBLE_EQ(makespan(kCriticalPath, 8), 3);
  EXPECT_DOUBLE_EQ(makespan(kCriticalPath, Schedule::kMinDividing - 1), 9);
  EXPECT_DOUBLE_EQ(makespan(kFifo, 8), 9);  // its executor runs whole tasks
  EXPECT_DOUBLE_EQ(FindCriticalPath(schedule, SecondsOf(costs)).seconds, 3);
  EXPECT_DOUBLE_EQ(FindCriticalPath(schedule, SecondsOf(costs), 1).seconds, 9);
  EXPECT_DOUBLE_EQ(MakespanBound(schedule, costs, Machine(8)), 3);
}

// A message of 5 seconds starts while the only worker runs the next tasks.
TEST(SimulateTest, MessagesTakeNoWorker) {
  const std::vector<double> seconds = {1, 5, 2, 2, 1};
  Schedule schedule = Build(seconds, {{0, 1}, {0, 2}, {2, 3}, {1, 4}, {3, 4}});
  for (const Policy* policy : Policies()) {
    schedule.ends_later = {};
    EXPECT_DOUBLE_EQ(Simulate(schedule, Costs(seconds), *policy, Machine(1)).makespan, 11);
    schedule.ends_later = {false, true, false, false, false};
    const Simulation simulation = Simulate(schedule, Costs(seconds), *policy, Machine(1));
    EXPECT_DOUBLE_EQ(simulation.makespan, policy == &kLevel ? 9 : 7) << policy->name;  // levels wait for messages
    EXPECT_DOUBLE_EQ(simulation.busy, 6) << policy->name;
  }
}

TEST(SimulateTest, NothingTakesNoTime) {
  const Schedule schedule = ScheduleBuilder().Build();
  for (const Policy* policy : Policies()) EXPECT_EQ(Simulate(schedule, {}, *policy, Machine(2)).makespan, 0);
  EXPECT_EQ(FindCriticalPath(schedule, {}).seconds, 0);
}

TEST(MakespanBoundTest, KnowsWorkPathsAndMemory) {
  const std::vector<double> seconds = {1, 2, 3, 4};
  EXPECT_DOUBLE_EQ(MakespanBound(Build(seconds, {{0, 1}, {1, 2}, {2, 3}}), Costs(seconds), Machine(8)), 10);
  EXPECT_DOUBLE_EQ(MakespanBound(Build(seconds, {}), Costs(seconds), Machine(2)), 5);
  // A task of 3 s, then eight of 1 s, then one of 2 s: the eight take at least 4 s on two workers.
  std::vector<double> diamond = {3, 1, 1, 1, 1, 1, 1, 1, 1, 2};
  std::vector<std::pair<uint32_t, uint32_t>> edges;
  for (uint32_t t = 1; t <= 8; ++t) edges.insert(edges.end(), {{0, t}, {t, 9}});
  EXPECT_DOUBLE_EQ(MakespanBound(Build(diamond, edges), Costs(diamond), Machine(2)), 9);
  EXPECT_DOUBLE_EQ(MakespanBound(Build({}, {}), {}, Machine(2)), 0);
  const std::vector<TaskCost> costs(4, {.seconds = 1, .bytes = 10});
  const SimulatedMachine machine = {.workers = 4, .task_seconds = 0, .worker_bandwidth = 10, .bandwidth = 20};
  EXPECT_DOUBLE_EQ(MakespanBound(Build({1, 1, 1, 1}, {}), costs, machine), 2);
}

// Each graph has 60 tasks of random durations, with random edges. About one task in eight is a message. The others read
// a random number of bytes and have 1 to 9 parts.
TEST(MakespanBoundTest, NoPolicyIsFaster) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const RandomStream random = {.seed = seed};
    uint64_t drawn = 0;
    ScheduleBuilder builder;
    std::vector<TaskCost> costs;
    for (uint32_t t = 0; t < 60; ++t) {
      const bool message = random.Below(8, drawn++) == 0;
      costs.push_back({.seconds = 1 + static_cast<double>(random.Below(100, drawn++)),
                       .bytes = message ? 0 : static_cast<double>(random.Below(1000, drawn++))});
      builder.AddTask(costs.back().seconds, message, message ? 1 : static_cast<uint16_t>(1 + random.Below(9, drawn++)));
      for (int edge = 0; t > 0 && edge < 2; ++edge) builder.AddEdge(random.Below(t, drawn++), t);
    }
    const Schedule schedule = std::move(builder).Build();
    for (const int workers : {1, 2, 5, 8, 13}) {
      const SimulatedMachine machine = {.workers = workers, .worker_bandwidth = 12, .bandwidth = 20};
      const double bound = MakespanBound(schedule, costs, machine);
      EXPECT_GE(bound, FindCriticalPath(schedule, SecondsOf(costs), workers).seconds);
      for (const Policy* policy : Policies()) {
        EXPECT_GE(Simulate(schedule, costs, *policy, machine).makespan, bound * (1 - 1e-9)) << policy->name << seed;
      }
    }
  }
}

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
    const Simulation simulation = SimulateRanks(ranks, kSlow, kCriticalPath, kMachine);
    EXPECT_DOUBLE_EQ(simulation.makespan, 8) << ranks.size();
    EXPECT_DOUBLE_EQ(simulation.communication, 5) << ranks.size();
    EXPECT_DOUBLE_EQ(simulation.hidden, 3) << ranks.size();
  }
}

TEST(SimulateRanksTest, AReceiveWaitsForTheSendOfASlowerRank) {
  const Exchange fast(0, 1, 2, 0), slow(1, 0, 10, 0);
  const Simulation simulation = SimulateRanks({fast.rank(), slow.rank()}, kSlow, kCriticalPath, kMachine);
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
