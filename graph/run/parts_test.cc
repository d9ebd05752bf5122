// These tests run tasks that have several parts.
#include <atomic>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/graph/run/policies/policies.h"
#include "weft/graph/run/stealing_executor.h"

namespace weft {
namespace {

// Runs divisible tasks on several threads. Each part runs once, after all parts of the task's predecessors, whose cells
// it reads. ThreadSanitizer reports a part that begins too early.
TEST(PartsTest, PartsRunOnceAndAfterAllPartsOfPredecessors) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto below = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
    ScheduleBuilder builder;
    std::vector<std::vector<uint32_t>> before(1 + below(40));
    std::vector<std::vector<int>> cells;
    for (uint32_t t = 0; t < before.size(); ++t) {
      const uint32_t parts = below(3) == 0 ? 1 : 1 + below(60);
      builder.AddTask(1e-3 * below(3), /*ends_later=*/false, static_cast<uint16_t>(parts));
      cells.emplace_back(parts);
      for (uint32_t k = t == 0 ? 0 : below(4); k > 0; --k) {
        before[t].push_back(below(t));
        builder.AddEdge(before[t].back(), t);
      }
    }
    const Schedule schedule = std::move(builder).Build();
    for (const Policy* policy : {&kCriticalPath, &kFifo}) {
      const std::unique_ptr<Executor> executor = MakeExecutor(*policy, &schedule, 1 + static_cast<int>(seed % 16));
      for (int run = 1; run <= 3; ++run) {
        std::atomic<int> too_early{0};
        executor->Run([&](TaskPart part, int) {
          for (uint32_t task : before[part.task]) {
            for (int cell : cells[task]) too_early.fetch_add(cell < run, std::memory_order_relaxed);
          }
          for (uint32_t p = part.begin; p < part.end; ++p) ++cells[part.task][p];
          if (seed % 3 == 0) std::this_thread::yield();
        });
        ASSERT_EQ(too_early.load(), 0);
        for (const std::vector<int>& task : cells) ASSERT_THAT(task, testing::Each(run));
      }
      for (std::vector<int>& task : cells) task.assign(task.size(), 0);
    }
  }
}

TEST(PartsTest, IdleWorkersTakePartsOfATask) {
  constexpr uint32_t kThreads = 8;
  ScheduleBuilder builder;
  builder.AddTask(1, /*ends_later=*/false, /*parts=*/64);
  const Schedule schedule = std::move(builder).Build();
  StealingExecutor executor(&schedule, kThreads);
  for (int run = 0; run < 3; ++run) {
    std::atomic<uint32_t> here{0};
    std::vector<std::atomic<int>> calls(kThreads);
    executor.Run([&](TaskPart, int worker) {
      if (calls[static_cast<size_t>(worker)].fetch_add(1) > 0) return;
      for (here.fetch_add(1); here.load() < kThreads;) std::this_thread::yield();  // all workers meet
    });
    EXPECT_EQ(executor.workers_entered(), static_cast<int>(kThreads));
    EXPECT_GE(executor.steals(), kThreads - 1);
  }
}

}  // namespace
}  // namespace weft
