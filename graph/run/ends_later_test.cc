// Tests that executors run other tasks while a task of Schedule::ends_later is under way. Its successors must wait
// until the task ends.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "weft/graph/run/policies/policies.h"
#include "weft/graph/schedule.h"

namespace weft {
namespace {

// A thread that ends tasks some time after they were started, as a network does.
class Network {
 public:
  explicit Network(std::vector<std::atomic<bool>>* ended) : ended_(*ended), thread_([this] { Work(); }) {}
  ~Network() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }

  void Start(uint32_t task, Executor* executor) {
    {
      const std::lock_guard lock(mutex_);
      started_.emplace_back(task, executor);
    }
    changed_.notify_one();
  }

 private:
  void Work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return stop_ || !started_.empty(); });
      if (started_.empty()) return;
      const auto [task, executor] = started_.front();
      started_.pop_front();
      lock.unlock();
      if (task % 8 == 0) std::this_thread::sleep_for(std::chrono::microseconds(100));
      ended_[task].store(true);
      executor->End(task);
      lock.lock();
    }
  }

  std::vector<std::atomic<bool>>& ended_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::pair<uint32_t, Executor*>> started_;
  bool stop_ = false;
  std::thread thread_;
};

// Runs a random graph twice, in which a third of the tasks end later.
void CheckGraph(uint32_t seed, const Policy& policy, int threads) {
  SCOPED_TRACE("seed " + std::to_string(seed) + " under " + policy.name + ", threads: " + std::to_string(threads));
  std::mt19937 random(seed);
  const uint32_t tasks = 1 + random() % 60;
  ScheduleBuilder builder;
  std::vector<std::vector<uint32_t>> before(tasks);
  std::vector<bool> ends_later;
  for (uint32_t t = 0; t < tasks; ++t) {
    ends_later.push_back(random() % 3 == 0);
    builder.AddTask(1e-6 * (1 + random() % 5), ends_later[t]);
    for (uint32_t k = t > 0 ? random() % 4 : 0; k > 0; --k) {
      before[t].push_back(random() % t);
      builder.AddEdge(before[t].back(), t);
    }
  }
  const Schedule schedule = std::move(builder).Build();
  std::vector<std::atomic<bool>> ended(tasks);
  Network network(&ended);
  const std::unique_ptr<Executor> executor = MakeExecutor(policy, &schedule, threads);
  for (int run = 0; run < 2; ++run) {
    for (auto& each : ended) each.store(false);
    std::vector<std::atomic<int>> starts(tasks);
    std::atomic<int> too_early{0};
    executor->Run([&](TaskPart part, int) {
      const uint32_t task = part.task;
      starts[task].fetch_add(1);
      for (const uint32_t b : before[task]) too_early.fetch_add(ended[b].load() ? 0 : 1);
      if (ends_later[task]) return network.Start(task, executor.get());
      ended[task].store(true);
    });
    for (uint32_t t = 0; t < tasks; ++t) {
      ASSERT_EQ(starts[t].load(), 1) << t;
      ASSERT_TRUE(ended[t].load()) << t;
    }
    ASSERT_EQ(too_early.load(), 0);
  }
}

TEST(EndsLaterTest, SuccessorsWaitForTheEnd) {
  for (const Policy* policy : Policies()) {
    for (const int threads : {1, 2, 4}) {
      for (uint32_t seed = 0; seed < 150 && !testing::Test::HasFatalFailure(); ++seed) {
        CheckGraph(seed, *policy, threads);
      }
    }
  }
}

// If the worker waited for the end of the first task, the second task would never start.
TEST(EndsLaterTest, AWorkerGoesOnMeanwhile) {
  for (const Policy* policy : Policies()) {
    SCOPED_TRACE(policy->name);
    ScheduleBuilder builder;
    const uint32_t message = builder.AddTask(1), other = builder.AddTask(1), last = builder.AddTask(1);
    builder.AddEdge(message, last);
    Schedule schedule = std::move(builder).Build();
    schedule.ends_later = {true, false, false};
    const std::unique_ptr<Executor> executor = MakeExecutor(*policy, &schedule, 1);
    bool others[3] = {};
    std::thread ender;
    std::atomic<bool> go{false};
    executor->Run([&](TaskPart part, int) {
      const uint32_t task = part.task;
      others[task] = true;
      if (task == message) {
        ender = std::thread([&] {
          while (!go.load()) std::this_thread::yield();
          executor->End(message);
        });
      }
      if (task == other) go.store(true);
    });
    ender.join();
    EXPECT_TRUE(others[message] && others[other] && others[last]);
  }
}

// Adds a path of five tasks of `seconds` each after the task `first`, and returns the last of them.
uint32_t AddPath(uint32_t first, double seconds, ScheduleBuilder* builder) {
  uint32_t last = first;
  for (int i = 0; i < 5; ++i) {
    const uint32_t next = builder->AddTask(seconds);
    builder->AddEdge(last, next);
    last = next;
  }
  return last;
}

// The messages of a graph usually follow each other with short tasks between them.
TEST(EndsLaterTest, TasksAfterTheEndComeBeforeAWorkersOwnTasks) {
  for (const int threads : {1, 2}) {
    ScheduleBuilder builder;
    const uint32_t message = builder.AddTask(1, /*ends_later=*/true), after = builder.AddTask(1),
                   first = builder.AddTask(1);
    const uint32_t last = AddPath(first, /*seconds=*/1, &builder);
    builder.AddEdge(message, after);
    const Schedule schedule = std::move(builder).Build();
    const std::unique_ptr<Executor> executor = MakeExecutor(kCriticalPath, &schedule, threads);
    std::atomic<bool> ran_last{false};
    bool in_time = false;
    executor->Run([&](TaskPart part, int) {
      const uint32_t task = part.task;
      if (task == first) std::thread([&] { executor->End(message); }).join();
      if (task == after) in_time = !ran_last.load();
      if (task == last) ran_last.store(true);
    });
    EXPECT_TRUE(in_time);
  }
}

// A long path begins beside short tasks for which a message waits.
TEST(EndsLaterTest, TasksThatMessagesWaitForComeBeforeLongerPaths) {
  ScheduleBuilder builder;
  const uint32_t first = builder.AddTask(1);
  const uint32_t gradient = builder.AddTask(1), sum = builder.AddTask(1), message = builder.AddTask(1, true);
  AddPath(first, /*seconds=*/10, &builder);
  builder.AddEdge(first, gradient);
  builder.AddEdge(gradient, sum);
  builder.AddEdge(sum, message);
  const Schedule built = std::move(builder).Build();
  for (const Schedule& schedule : {built, WithSeconds(built, std::vector<double>(built.task_count, 1))}) {
    const std::unique_ptr<Executor> executor = MakeExecutor(kCriticalPath, &schedule, /*threads=*/1);
    std::vector<uint32_t> order;
    executor->Run([&](TaskPart part, int) {
      const uint32_t task = part.task;
      order.push_back(task);
      if (task == message) executor->End(message);
    });
    ASSERT_GE(order.size(), 4u);
    EXPECT_EQ(std::vector<uint32_t>(order.begin(), order.begin() + 4),
              (std::vector<uint32_t>{first, gradient, sum, message}));
  }
}

}  // namespace
}  // namespace weft
