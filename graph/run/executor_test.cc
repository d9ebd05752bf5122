// These tests run random graphs on plain memory. Some tiles overwrite what they read, write the next version of a
// state, or take the bytes of a dead value. ThreadSanitizer reports every missing edge.
#include "weft/graph/run/executor.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/graph/run/deque.h"
#include "weft/graph/run/policies/policies.h"
#include "weft/graph/run/stealing_executor.h"

namespace weft {
namespace {

constexpr int kCells = 8;  // of a buffer; a tile has a part of them

struct Range {
  int begin = 0, end = 0;
};

struct Read {
  int buffer = 0;
  Range cells;
};

struct TileWork {
  uint64_t salt = 0;
  int spins = 0;
  std::vector<Read> reads;
  Read writes;
};

class RandomGraph {
 public:
  explicit RandomGraph(uint32_t seed) : random_(seed) {
    const int nodes = 1 + Below(300), states = Below(4);
    for (int i = 0; i < states; ++i) AddNode(NewBuffer(), {});
    for (int i = 0; i < nodes; ++i) {
      const int from = Below(4);
      std::vector<int> inputs;
      for (int k = 0; k < from && !values_.empty(); ++k) inputs.push_back(RecentValue());
      const int kind = Below(6);
      if (kind == 0 && !inputs.empty()) {  // in place, or the next version of a state
        AddNode(values_[inputs[0]].buffer, inputs);
      } else if (kind <= 2 && !values_.empty()) {  // the bytes of another value
        AddNode(values_[RecentValue()].buffer, inputs);
      } else {
        AddNode(NewBuffer(), inputs);
      }
    }
  }

  Schedule Build(int threads) {
    meetings_ = threads;
    first_meeting_ = static_cast<uint32_t>(work_.size());
    for (int i = 0; i < threads; ++i) builder_.AddTask(0);
    return std::move(builder_).Build();
  }

  // Does the work of one tile: computes the cells that it writes from the cells that it reads.
  static void Do(const TileWork& work, std::vector<uint64_t>* cells) {
    uint64_t sum = work.salt;
    for (const Read& read : work.reads) {
      for (int c = read.cells.begin; c < read.cells.end; ++c) sum = Mix(sum ^ (*cells)[read.buffer * kCells + c]);
    }
    for (int i = 0; i < work.spins; ++i) sum = Mix(sum);
    for (int c = work.writes.cells.begin; c < work.writes.cells.end; ++c) {
      (*cells)[work.writes.buffer * kCells + c] = Mix(sum + c);
    }
  }

  const std::vector<TileWork>& work() const { return work_; }
  const std::vector<std::vector<uint32_t>>& before() const { return before_; }
  size_t cells() const { return static_cast<size_t>(buffers_) * kCells; }
  uint32_t first_meeting() const { return first_meeting_; }
  int meetings() const { return meetings_; }

 private:
  struct Value {
    int buffer = 0;
    std::vector<uint32_t> makers, readers;  // tasks
    bool alive = true;
  };

  static uint64_t Mix(uint64_t x) {
    x = (x ^ (x >> 31)) * 0x9e3779b97f4a7c15u;
    return x ^ (x >> 29);
  }
  int Below(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }
  int NewBuffer() { return buffers_++; }
  int RecentValue() {  // one that is still there
    for (;;) {
      const int v = static_cast<int>(values_.size()) - 1 - Below(std::min<int>(20, static_cast<int>(values_.size())));
      if (values_[v].alive) return v;
    }
  }

  void Edge(uint32_t before, uint32_t after) {
    builder_.AddEdge(before, after);
    before_[after].push_back(before);
  }

  // Adds a node whose tiles write `buffer`. All of them wait for the earlier users of the buffer, by a join if there
  // are several.
  void AddNode(int buffer, const std::vector<int>& inputs) {
    std::vector<uint32_t> users;
    for (Value& v : values_) {
      if (!v.alive || v.buffer != buffer) continue;
      v.alive = false;
      users.insert(users.end(), v.readers.begin(), v.readers.end());
      users.insert(users.end(), v.makers.begin(), v.makers.end());
    }
    const bool joins = users.size() > 2;
    const uint32_t join = static_cast<uint32_t>(work_.size());
    if (joins) {
      AddTask({});
      for (uint32_t user : users) Edge(user, join);
      users.assign(1, join);
    }
    Value made = {.buffer = buffer};
    const int tiles = 1 << Below(4);
    const int spins = Below(8) == 0 ? 2000 : Below(20);
    std::vector<bool> whole;
    for (size_t k = 0; k < inputs.size(); ++k) {
      whole.push_back(Below(2) == 0 && values_[inputs[k]].buffer != buffer);  // its own bytes only where it writes
    }
    for (int t = 0; t < tiles; ++t) {
      const Range part = {kCells * t / tiles, kCells * (t + 1) / tiles};
      TileWork work = {.salt = random_(), .spins = spins, .writes = {buffer, part}};
      const uint32_t task = static_cast<uint32_t>(work_.size());
      for (size_t k = 0; k < inputs.size(); ++k) {
        work.reads.push_back({values_[inputs[k]].buffer, whole[k] ? Range{0, kCells} : part});
      }
      AddTask(work);
      for (uint32_t user : users) Edge(user, task);
      for (size_t k = 0; k < inputs.size(); ++k) {
        Value& v = values_[inputs[k]];
        for (uint32_t maker : v.makers) {
          const Range made_part = work_[maker].writes.cells, read = work.reads[k].cells;
          if (made_part.begin < read.end && read.begin < made_part.end) Edge(maker, task);
        }
        v.readers.push_back(task);
      }
      made.makers.push_back(task);
    }
    values_.push_back(std::move(made));
  }

  void AddTask(TileWork work) {
    builder_.AddTask(static_cast<double>(work.spins + 1) * 1e-9);
    work_.push_back(std::move(work));
    before_.emplace_back();
  }

  std::mt19937 random_;
  ScheduleBuilder builder_;
  int buffers_ = 0, meetings_ = 0;
  uint32_t first_meeting_ = 0;
  std::vector<Value> values_;
  std::vector<TileWork> work_;
  std::vector<std::vector<uint32_t>> before_;
};

// Workers that call Attend wait until all `workers` have called it. If one does not come within a minute, ends the
// program.
class Meeting {
 public:
  void Attend(int workers) {
    here_.fetch_add(1, std::memory_order_relaxed);
    const auto begin = std::chrono::steady_clock::now();
    while (here_.load(std::memory_order_relaxed) < workers) {
      std::this_thread::yield();
      if (std::chrono::steady_clock::now() - begin < std::chrono::seconds(60)) continue;
      std::fprintf(stderr, "executor_test: of %d workers %d came in a minute\n", workers, here_.load());
      std::abort();
    }
  }

 private:
  std::atomic<int> here_{0};
};

// Runs the graph twice on one to eight threads, and expects the result of an execution in the order of the tasks.
void CheckGraph(uint32_t seed, const Policy& policy = kCriticalPath, bool meet = true) {
  SCOPED_TRACE("repeat with WEFT_SEED=" + std::to_string(seed) + " under " + policy.name);
  RandomGraph graph(seed);
  const int threads = &policy == &kSerial ? 1 : 1 + static_cast<int>(seed % 8);
  const Schedule schedule = graph.Build(threads);
  const uint32_t tasks = static_cast<uint32_t>(graph.work().size());
  std::vector<uint64_t> wanted(graph.cells(), 0), cells(graph.cells(), 0);
  const std::unique_ptr<Executor> executor = MakeExecutor(policy, &schedule, threads);
  for (int run = 0; run < 2; ++run) {
    for (const TileWork& work : graph.work()) RandomGraph::Do(work, &wanted);
    std::vector<std::atomic<int>> times(schedule.task_count);
    std::atomic<int> too_early{0};
    Meeting meeting;
    executor->Run([&](TaskPart part, int worker) {
      const uint32_t task = part.task;
      ASSERT_LT(worker, threads);
      ASSERT_EQ(times[task].fetch_add(1, std::memory_order_relaxed), 0);
      if (task >= tasks) {
        if (meet && threads > 1) meeting.Attend(threads);
        return;
      }
      for (uint32_t before : graph.before()[task]) {
        if (times[before].load(std::memory_order_relaxed) == 0) too_early.fetch_add(1, std::memory_order_relaxed);
      }
      RandomGraph::Do(graph.work()[task], &cells);
    });
    for (const auto& count : times) ASSERT_EQ(count.load(), 1);
    ASSERT_EQ(too_early.load(), 0);
    ASSERT_EQ(cells, wanted);
    if (meet) {
      ASSERT_EQ(executor->workers_entered(), threads);
    }
  }
}

// Returns the number of random graphs of a test: 1,000, or WEFT_GRAPHS.
uint32_t GraphCount() {
  const char* const count = std::getenv("WEFT_GRAPHS");
  uint32_t graphs = 1000;
  if (count != nullptr) {
    EXPECT_TRUE(absl::SimpleAtoi(count, &graphs) && graphs >= 5) << "WEFT_GRAPHS=" << count;
  }
  return graphs;
}

TEST(ExecutorTest, RandomGraphsGiveWhatASerialRunGives) {
  if (const char* seed = std::getenv("WEFT_SEED")) return CheckGraph(static_cast<uint32_t>(std::atoll(seed)));
  for (uint32_t seed = 0; seed < GraphCount() && !HasFatalFailure(); ++seed) CheckGraph(seed);
}

TEST(ExecutorTest, RandomGraphsGiveTheSameUnderEveryPolicy) {
  for (const Policy* policy : Policies()) {
    if (policy == &kCriticalPath) continue;  // the test above has the same graphs
    for (uint32_t seed = 0; seed < GraphCount() / 5 && !HasFatalFailure(); ++seed) CheckGraph(seed, *policy);
  }
}

TEST(ExecutorTest, RunsOneTaskWithoutCallingAnyone) {
  ScheduleBuilder builder;
  builder.AddTask(1);
  const Schedule schedule = std::move(builder).Build();
  StealingExecutor executor(&schedule, 8);
  int runs = 0;
  for (int i = 0; i < 100; ++i) {
    executor.Run([&](TaskPart part, int worker) { runs += part.task == 0 && worker == 0; });
    EXPECT_EQ(executor.workers_entered(), 1);
  }
  EXPECT_EQ(runs, 100);
}

TEST(ExecutorTest, RunsAScheduleWithoutTasks) {
  const Schedule schedule = ScheduleBuilder().Build();
  for (const Policy* policy : Policies()) {
    for (int threads : {1, 2}) MakeExecutor(*policy, &schedule, threads)->Run([](TaskPart, int) { FAIL(); });
  }
}

TEST(ExecutorTest, ExecutorsComeAndGoWhileOthersRun) {
  std::vector<std::thread> users;
  for (int user = 0; user < 4; ++user) {
    users.emplace_back([user] {
      for (uint32_t i = 0; i < 100; ++i)
        CheckGraph(static_cast<uint32_t>(user) * 1000 + i, kCriticalPath, /*meet=*/false);
    });
  }
  for (std::thread& user : users) user.join();
}

TEST(ExecutorTest, WorkersThatFoundNothingForLongComeAgain) {
  constexpr uint32_t kThreads = 4;
  ScheduleBuilder builder;
  for (uint32_t t = 0; t < kThreads; ++t) builder.AddTask(1);  // at which all meet
  const uint32_t pause = builder.AddTask(1);
  for (uint32_t t = 0; t < kThreads; ++t) builder.AddEdge(t, pause);
  for (uint32_t t = 0; t < kThreads; ++t) builder.AddEdge(pause, builder.AddTask(1));  // at which they meet again
  const Schedule schedule = std::move(builder).Build();
  StealingExecutor executor(&schedule, kThreads);
  for (int run = 0; run < 20; ++run) {
    Meeting first, second;
    executor.Run([&](TaskPart part, int) {
      const uint32_t task = part.task;
      if (task < kThreads) first.Attend(kThreads);
      if (task == pause) std::this_thread::sleep_for(std::chrono::milliseconds(20));
      if (task > pause) second.Attend(kThreads);
    });
    ASSERT_EQ(executor.workers_entered(), static_cast<int>(kThreads));
  }
}

TEST(ExecutorTest, CountsWhatWasStolen) {
  constexpr uint32_t kThreads = 4;
  ScheduleBuilder builder;
  for (uint32_t t = 0; t < kThreads; ++t) builder.AddTask(1);  // at which all meet: the caller has all but those stolen
  const Schedule schedule = std::move(builder).Build();
  StealingExecutor executor(&schedule, kThreads), alone(&schedule, 1);
  for (int run = 0; run < 3; ++run) {
    Meeting meeting;
    executor.Run([&](TaskPart, int) { meeting.Attend(kThreads); });
    EXPECT_EQ(executor.steals(), kThreads - 1);
  }
  alone.Run([](TaskPart, int) {});
  EXPECT_EQ(alone.steals(), std::nullopt);
  EXPECT_EQ(MakeExecutor(kFifo, &schedule, kThreads)->steals(), std::nullopt);
}

TEST(ExecutorTest, NothingIsStolenFromAChain) {
  ScheduleBuilder builder;
  for (uint32_t t = 0; t < 100; ++t) {
    builder.AddTask(1);
    if (t > 0) builder.AddEdge(t - 1, t);
  }
  const Schedule schedule = std::move(builder).Build();
  StealingExecutor executor(&schedule, 4);
  executor.Run([](TaskPart, int) {});
  EXPECT_EQ(executor.steals(), 0u);
}

TEST(ScheduleTest, PutsTheMostCriticalLast) {
  ScheduleBuilder builder;
  for (double seconds : {1., 1., 5., 2.}) builder.AddTask(seconds);
  for (uint32_t t : {1, 2, 3}) builder.AddEdge(0, t);
  const uint32_t tail = builder.AddTask(7);
  builder.AddEdge(1, tail);
  const Schedule schedule = std::move(builder).Build();
  constexpr uint32_t kAlone = Schedule::kAlone;
  EXPECT_THAT(std::vector<uint32_t>(schedule.successors.begin(), schedule.successors.begin() + 3),
              testing::ElementsAre(3 | kAlone, 2 | kAlone, 1 | kAlone));
}

TEST(ScheduleTest, NoTaskWaitsForVeryMany) {
  ScheduleBuilder builder;
  builder.AddTask(1);
  for (uint32_t i = 1; i <= 10'000; ++i) builder.AddEdge(0, builder.AddTask(1));
  const uint32_t last = builder.AddTask(1);
  for (uint32_t i = 1; i <= 10'000; ++i) builder.AddEdge(i, last);
  const Schedule schedule = std::move(builder).Build();
  EXPECT_EQ(schedule.task_count, 10'002u);
  EXPECT_LE(*std::max_element(schedule.waits_for.begin(), schedule.waits_for.end()), 64u);
  EXPECT_LT(schedule.size(), 10'002u + 10'000 / 64 + 10);
  EXPECT_EQ(schedule.waits_for[last], 3u);
}

TEST(ScheduleTest, AnEdgeTwiceIsOne) {
  ScheduleBuilder builder;
  builder.AddTask(1);
  builder.AddTask(1);
  const uint32_t last = builder.AddTask(1);
  for (int i = 0; i < 3; ++i) {
    builder.AddEdge(0, 1);
    builder.AddEdge(0, last);
    builder.AddEdge(1, last);
  }
  const Schedule schedule = std::move(builder).Build();
  EXPECT_EQ(schedule.waits_for[1], 1u);
  EXPECT_EQ(schedule.waits_for[last], 2u);
}

TEST(ScheduleTest, From65PredecessorsOnTasksHaveJoins) {
  for (const uint32_t count : {64u, 65u}) {
    ScheduleBuilder builder;
    for (uint32_t t = 0; t < count; ++t) builder.AddTask(1);
    const uint32_t last = builder.AddTask(1);
    for (uint32_t t = 0; t < count; ++t) builder.AddEdge(t, last);
    const Schedule schedule = std::move(builder).Build();
    EXPECT_EQ(schedule.waits_for[last], count == 64 ? 64u : 2u);
    EXPECT_EQ(SerialOrder(schedule).size(), schedule.size());
  }
}

TEST(DequeTest, GrowsAndKeepsItsOrder) {
  Deque deque(256);
  uint64_t entry = 0;
  EXPECT_FALSE(deque.Pop(&entry));
  EXPECT_FALSE(deque.Steal(&entry));
  for (uint64_t i = 0; i < 1000; ++i) deque.Push(i);
  EXPECT_TRUE(deque.Steal(&entry));
  EXPECT_EQ(entry, 0u);
  for (uint64_t i = 999; i >= 1; --i) {
    ASSERT_TRUE(deque.Pop(&entry));
    ASSERT_EQ(entry, i);
  }
  EXPECT_FALSE(deque.Pop(&entry));
}

}  // namespace
}  // namespace weft
