#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/lab/timed_step.h"

namespace weft {
namespace {

using testing::HasSubstr;

constexpr char kTwo[] =
    R"({"weft_tasks": 1, "tasks": [{"name": "load", "seconds": 2, "bytes": 5}, {"seconds": 1}], "edges": [[0, 1]]})";

TEST(TaskFileTest, ReadsTasksAndEdges) {
  const absl::StatusOr<Workload> tasks = ParseTasks(kTwo, "two.json");
  ASSERT_TRUE(tasks.ok()) << tasks.status();
  EXPECT_THAT(tasks->names, testing::ElementsAre("load", ""));
  EXPECT_EQ(tasks->costs[0].bytes, 5);
  const Schedule& schedule = tasks->schedule;
  EXPECT_EQ(schedule.task_count, 2u);
  EXPECT_DOUBLE_EQ(FindCriticalPath(schedule, SecondsOf(tasks->costs)).seconds, 3);
  EXPECT_DOUBLE_EQ(Simulate(schedule, tasks->costs, kFifo, {.workers = 2, .task_seconds = 0}).makespan, 3);
}

// The list includes the joins that a builder adds if many tasks wait for many others.
TEST(TaskFileTest, AWrittenScheduleTakesAsLong) {
  ScheduleBuilder builder;
  std::vector<std::string> names;
  std::vector<TaskCost> costs;
  for (int t = 0; t < 200; ++t) {
    names.push_back(std::to_string(t));
    costs.push_back({.seconds = 1.0 + t % 7, .bytes = 100.0 * t, .cached = 3.0 * t});
    builder.AddTask(costs.back().seconds, /*ends_later=*/false, static_cast<uint16_t>(1 + t % 3));
  }
  for (uint32_t before = 0; before < 100; ++before) {
    for (uint32_t after = 100; after < 200; after += 1 + before % 3) builder.AddEdge(before, after);
  }
  const Schedule schedule = std::move(builder).Build();
  const absl::StatusOr<Workload> read =
      ParseTasks(PrintTasks({.schedule = schedule, .costs = costs, .names = names}), "written");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_DOUBLE_EQ(read->critical_path(), FindCriticalPath(schedule, SecondsOf(costs)).seconds);
  double bytes = 0, cached = 0;
  for (const TaskCost& cost : read->costs) {
    bytes += cost.bytes;
    cached += cost.cached;
  }
  EXPECT_DOUBLE_EQ(bytes, 100.0 * 199 * 200 / 2);
  EXPECT_DOUBLE_EQ(cached, 3.0 * 199 * 200 / 2);
}

TEST(TaskFileTest, SaysWhatIsWrongAndWhere) {
  const auto error = [](const std::string& text) {
    return std::string(ParseTasks(text, "bad.json").status().message());
  };
  EXPECT_THAT(error("tasks"), HasSubstr("bad.json is not a file of tasks: it is not JSON"));
  EXPECT_THAT(error("[]"), HasSubstr("it is not a JSON object"));
  EXPECT_THAT(error(std::string(100'000, '[')), HasSubstr("nested too deeply"));
  EXPECT_THAT(error(R"({"weft_tasks": 2})"), HasSubstr("\"weft_tasks\" is 2, not 1"));
  EXPECT_THAT(error(R"({"weft_tasks": 1, "weft_tasks": 1})"), HasSubstr("'weft_tasks' occurs twice"));
  EXPECT_THAT(error(R"({"weft_tasks": 1, "edge": []})"), HasSubstr("unknown key 'edge'"));
  EXPECT_THAT(error(R"({"weft_tasks": 1, "tasks": [], "edges": []})"),
              HasSubstr("\"tasks\" is not a list of at least one"));
  EXPECT_THAT(error(R"({"weft_tasks": 1, "tasks": [{"seconds": 1}]})"), HasSubstr("\"edges\" is not a list"));
  const auto edge = [&](const std::string& pair) {
    return error(R"({"weft_tasks": 1, "tasks": [{"seconds": 1}, {"seconds": 1}], "edges": [)" + pair + "]}");
  };
  EXPECT_THAT(edge("[1, 0]"), HasSubstr("edge 0 leads from 1 to 0, but must lead to a later one of the 2 tasks"));
  EXPECT_THAT(edge("[0, 1], [0, 2]"), HasSubstr("edge 1 leads from 0 to 2"));
  EXPECT_THAT(edge("[0, -1]"), HasSubstr("not a pair of tasks' numbers"));
  EXPECT_THAT(edge("[0, 0.5]"), HasSubstr("not a pair of tasks' numbers"));
  for (const char* task : {R"({"seconds": -1})", R"({"seconds": "1"})", R"({})", R"({"seconds": 1, "bytes": -1})",
                           R"({"seconds": 1e308})", R"({"seconds": 1, "bytes": 1e300})"}) {
    EXPECT_THAT(error(std::string(R"({"weft_tasks": 1, "tasks": [)") + task + R"(], "edges": []})"),
                HasSubstr("task 0 needs \"seconds\""));
  }
  EXPECT_THAT(error(R"({"weft_tasks": 1, "tasks": [{"seconds": 1, "byte": 1}], "edges": []})"),
              HasSubstr("task 0 has an unknown key 'byte'"));
  for (const char* parts : {"0", "-1", "1.5", "65536", "\"2\""}) {
    EXPECT_THAT(
        error(std::string(R"({"weft_tasks": 1, "tasks": [{"seconds": 1, "parts": )") + parts + "}], \"edges\": []}"),
        HasSubstr(std::string("the parts of task 0 are ") + parts + ", not a whole number from 1 to 65535"));
  }
}

}  // namespace
}  // namespace weft
