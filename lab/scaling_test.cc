#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>

#include "weft/lab/timed_step.h"

namespace weft {
namespace {

// All workers together copy as many bytes as one does.
constexpr SharingRow kMemory[] = {{.threads = 1, .bytes = 1e9}, {.threads = 64, .bytes = 1e9}};

Workload Tasks(const std::string& tasks, const std::string& edges) {
  return ParseTasks(R"({"weft_tasks": 1, "tasks": [)" + tasks + R"(], "edges": [)" + edges + "]}", "tasks").value();
}

// Four tasks of a second each; the last waits for the other three.
Workload Join() {
  return Tasks(R"({"seconds": 1}, {"seconds": 1}, {"seconds": 1}, {"seconds": 1})", "[0, 3], [1, 3], [2, 3]");
}

TEST(ScalingTest, MoreWorkersThanTasksThatAreReadyDoNotHelp) {
  const Workload work = Join();
  EXPECT_DOUBLE_EQ(work.seconds(), 4);
  EXPECT_DOUBLE_EQ(work.critical_path(), 2);
  for (const auto& [workers, makespan] : {std::pair{1, 4.0}, {2, 3.0}, {3, 2.0}, {4, 2.0}}) {
    const Simulation simulation = Predict(work, {.policy = &kCriticalPath, .workers = workers}, kMemory);
    EXPECT_NEAR(simulation.makespan, makespan, 1e-3) << workers;
  }
}

TEST(ScalingTest, TheFirstNumberOfWorkersThatBringsLittleIsMarked) {
  std::vector<ScalingCase> cases = ScalingCases("critical-path", {1, 2, 3, 4, 5});
  ASSERT_EQ(cases.size(), 5u);
  cases[1].seconds = {4, 3, 9};
  const std::vector<Prediction> all = PredictAll(Join(), cases, kMemory);
  for (const auto& [i, speedup] : {std::pair{0, 1.0}, {1, 4.0 / 3}, {2, 2.0}, {3, 2.0}, {4, 2.0}}) {
    EXPECT_NEAR(all[i].speedup, speedup, 1e-3);
    EXPECT_EQ(all[i].workers, i + 1);
    EXPECT_EQ(all[i].saturated, i == 3) << i;
    EXPECT_EQ(all[i].measured, i == 1 ? std::optional<double>(4) : std::nullopt);
  }
  const std::vector<ScalingCase> more = ScalingCases("all", {1, 8});
  EXPECT_EQ(more.size(), 2 * Policies().size());
  EXPECT_EQ(more[0].policy, more[1].policy);
}

TEST(ScalingTest, WorkersShareTheMemorysBandwidth) {
  Workload work = Join();
  for (TaskCost& cost : work.costs) cost.bytes = 1e9;  // each takes one worker's whole bandwidth
  const ScalingCase three = {.policy = &kCriticalPath, .workers = 3};
  EXPECT_NEAR(Predict(work, three, {{.threads = 1, .bytes = 1e9}}).makespan, 2, 1e-3);
  EXPECT_NEAR(Predict(work, three, kMemory).makespan, 4, 1e-3);
}

TEST(ScalingTest, WorkersThatShareAMachineAreSlower) {
  Workload work = Join();
  const ScalingCase three = {.policy = &kCriticalPath, .workers = 3};
  // Three threads compute twice as much as one, so each is slower by half. The last task runs alone.
  EXPECT_NEAR(Predict(work, three, {{.threads = 1, .flops = 1}, {.threads = 3, .flops = 2}}).makespan, 2.5, 1e-3);
  // Worker 0 runs one of the first three tasks alone, and the others wait for 0.25 s.
  EXPECT_NEAR(Predict(work, three, {{.threads = 3, .wake_seconds = 0.25}}).makespan, 2.25, 1e-3);
  for (TaskCost& cost : work.costs) cost.cached = 3e6;  // other workers wrote two thirds of what the last task reads
  EXPECT_NEAR(Predict(work, three, {{.threads = 3, .moved_byte_seconds = 1e-6}}).makespan, 4, 1e-3);
  EXPECT_NEAR(Predict(work, {.policy = &kCriticalPath}, {{.threads = 1, .flops = 1}}).makespan, 4, 1e-3);
  constexpr char kBehindJoin[] =
      R"({"seconds": 1}, {"seconds": 1}, {"seconds": 1}, {"seconds": 0}, {"name": "reader", "seconds": 1})";
  Workload behind = Tasks(kBehindJoin, "[0, 3], [1, 3], [2, 3], [3, 4]");
  for (TaskCost& cost : behind.costs) cost.cached = 3e6;
  EXPECT_NEAR(Predict(behind, three, {{.threads = 3, .moved_byte_seconds = 1e-6}}).makespan, 6, 1e-3);
}

TEST(ScalingTest, AMeasuredStepBecomesAListOfTasks) {
  std::vector<ScalingCase> cases = {{.policy = &kCriticalPath, .workers = 1},
                                    {.policy = &kCriticalPath, .workers = 1 << 20}};
  const auto work = MeasureWorkload({.graph = {"towers"}, .runs = 2}, absl::MakeSpan(cases));
  ASSERT_TRUE(work.ok()) << work.status();
  EXPECT_EQ(cases[0].seconds.size(), 2u);
  EXPECT_EQ(cases[1].seconds.size(), 0u);  // there are fewer cores
  EXPECT_EQ(work->names.size(), work->costs.size());
  EXPECT_GT(work->seconds(), work->critical_path());
  const absl::StatusOr<Workload> tasks = ParseTasks(PrintTasks(*work), "tasks");
  ASSERT_TRUE(tasks.ok()) << tasks.status();
  EXPECT_EQ(tasks->names.size(), tasks->costs.size());
  EXPECT_NEAR(tasks->critical_path(), work->critical_path(), 1e-9);
}

}  // namespace
}  // namespace weft
