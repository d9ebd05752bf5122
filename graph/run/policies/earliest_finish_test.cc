// Runs the queues of earliest-finish and earliest-finish-learned as an executor does.
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/graph/run/policies/policies.h"

namespace weft {
namespace {

using testing::ElementsAre;

Schedule Independent(const std::vector<double>& seconds) {
  ScheduleBuilder builder;
  for (const double s : seconds) builder.AddTask(s);
  return std::move(builder).Build();
}

TEST(EarliestFinishTest, ATaskGoesToTheWorkerThatWouldFinishItFirst) {
  const Schedule schedule = Independent({4, 3, 1});
  const auto queue = kEarliestFinish.queue(&schedule, 2);
  for (const uint32_t task : {2, 1, 0}) queue->Push(task, 0);
  EXPECT_EQ(queue->Pop(1), 1);  // 3 s on worker 1 end before 1 + 3 s on worker 0
  EXPECT_EQ(queue->Pop(0), 0);  // with 1 + 4 s, worker 0 ends before worker 1 with 3 + 4 s; the longer path comes first
  queue->Finish(1, 0);
  EXPECT_EQ(queue->Pop(1), 2);  // from the list of the other worker
  queue->Finish(0, 0);
  queue->Finish(2, 0);
  EXPECT_EQ(queue->Pop(0), std::nullopt);
}

TEST(EarliestFinishTest, OtherCachesCostATenth) {
  const Schedule schedule = Independent({1, 20});
  const auto queue = kEarliestFinish.queue(&schedule, 2);
  queue->Push(0, 0);
  queue->Push(1, 0);  // 1 + 20 s on worker 0, and 22 s on worker 1
  EXPECT_EQ(queue->Pop(0), 1);
  EXPECT_EQ(queue->Pop(0), 0);
  queue->Finish(0, 0);
  queue->Finish(1, 0);
}

// A message of 10 s starts before a task of 20 s, and keeps no worker busy.
TEST(EarliestFinishTest, MessagesComeFirstAndTakeNoWorker) {
  ScheduleBuilder builder;
  builder.AddTask(10, /*ends_later=*/true);
  builder.AddTask(20);
  builder.AddTask(1);
  const Schedule schedule = std::move(builder).Build();
  const auto queue = kEarliestFinish.queue(&schedule, 2);
  queue->Push(0, 0);
  queue->Push(1, 0);  // 20 s on worker 0, because the message keeps no worker busy
  EXPECT_EQ(queue->Pop(0), 0);
  queue->Push(2, 1);  // on worker 1
  EXPECT_EQ(queue->Pop(1), 2);
  EXPECT_EQ(queue->Pop(0), 1);
  for (const uint32_t task : {0, 1, 2}) queue->Finish(task, 0);
}

// Pushes all tasks and lets one worker run them. Task i takes took[i] seconds. Returns the order in which they ran.
std::vector<uint32_t> Order(ReadyQueue* queue, const std::vector<double>& took) {
  for (uint32_t task = 0; task < took.size(); ++task) queue->Push(task, 0);
  std::vector<uint32_t> order;
  while (const std::optional<uint32_t> task = queue->Pop(0)) {
    order.push_back(*task);
    queue->Finish(*task, took[*task]);
  }
  return order;
}

TEST(EarliestFinishTest, LearnsTheDurationsOfTheLastExecution) {
  const Schedule schedule = Independent({3, 2, 1});
  const auto knows = kEarliestFinish.queue(&schedule, 1), learns = kEarliestFinishLearned.queue(&schedule, 1);
  for (int execution = 0; execution < 2; ++execution) {
    EXPECT_THAT(Order(knows.get(), {5, 7, 6}), ElementsAre(0, 1, 2));
  }
  EXPECT_THAT(Order(learns.get(), {5, 7, 6}), ElementsAre(0, 1, 2));
  EXPECT_THAT(Order(learns.get(), {9, 8, 7}), ElementsAre(1, 2, 0));
  EXPECT_THAT(Order(learns.get(), {1, 1, 1}), ElementsAre(0, 1, 2));
  EXPECT_THAT(Order(learns.get(), {1, 2, 3}), ElementsAre(0, 1, 2));  // equal durations
  learns->Forget();                                                   // an execution that was cancelled
  EXPECT_THAT(Order(learns.get(), {1, 2, 3}), ElementsAre(0, 1, 2));
}

// Runs tasks 0, 1 and 2, and 3 after 0, on one thread. In the first execution 3 takes longest, then 2, which differs
// from the schedule. The second execution goes by the measured durations.
TEST(EarliestFinishTest, AnExecutorMeasuresTheDurations) {
  ScheduleBuilder builder;
  for (const double seconds : {1, 5, 4, 1}) builder.AddTask(seconds);
  builder.AddEdge(0, 3);
  const Schedule schedule = std::move(builder).Build();
  const auto executor = MakeExecutor(kEarliestFinishLearned, &schedule, 1);
  std::vector<uint32_t> order;
  using Clock = std::chrono::steady_clock;
  const auto run = [&] {
    order.clear();
    const Clock::time_point begin = Clock::now();
    executor->Run([&](TaskPart part, int) {
      const uint32_t task = part.task;
      order.push_back(task);
      // Tasks 2 and 3 take longer than all tasks before them, however slow the machine is.
      if (task >= 2) std::this_thread::sleep_for(2 * (Clock::now() - begin));
    });
  };
  run();
  EXPECT_THAT(order, ElementsAre(1, 2, 0, 3));
  run();
  EXPECT_THAT(order, ElementsAre(0, 3, 2, 1));
  run();
  executor->Run([](TaskPart part, int) {  // cancelled: by these durations, task 1 would be first
    const uint32_t task = part.task;
    if (task == 1) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  });
  executor->Forget();
  run();
  EXPECT_NE(order.front(), 1);
}

}  // namespace
}  // namespace weft
