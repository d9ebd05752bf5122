#include "weft/lab/schedule_report.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/distributed/in_process.h"
#include "weft/distributed/message_ops.h"
#include "weft/graph/compile/compile.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

// Returns the data of a page.
nlohmann::json Data(const std::string& page) {
  constexpr char kOpen[] = "<script id=\"data\" type=\"application/json\">";
  const size_t begin = page.find(kOpen) + sizeof kOpen - 1, end = page.find("</script>", begin);
  return nlohmann::json::parse(page.substr(begin, end - begin));
}

// A chain of two large products beside a small one.
class ScheduleReportTest : public testing::Test {
 protected:
  void SetUp() override {
    const Var x = tape_.Input("x", {kF32, {512, 512}}), w = tape_.Parameter("w", {kF32, {512, 512}}, Gaussian(0.1f));
    Var y;
    {
      const Scope scope(&tape_, "</script> & \"deep\"");
      y = MatMul(MatMul(Tanh(Tanh(x)), w), w);  // the second tanh overwrites the first
    }
    absl::StatusOr<Graph> graph =
        Compile(tape_, {.fetch = {Sum(y), Sum(Exp(Slice(x, 0, 0, 8)))}, .without = {Pass::kFuse}});
    ASSERT_TRUE(graph.ok()) << graph.status();
    graph_ = std::make_unique<Graph>(*graph);
    runner_ = std::make_unique<Runner>(*graph_, &parameters_, RunnerOptions{.threads = 2, .timed = true});
    const std::vector<float> values(512 * 512, 0.5f);
    for (int run = 0; run < 2; ++run) ASSERT_TRUE(runner_->Run({{x, values}}).ok());
  }

  Tape tape_;
  std::unique_ptr<Graph> graph_;
  Parameters parameters_{{.seed = 1}};
  std::unique_ptr<Runner> runner_;
};

TEST_F(ScheduleReportTest, ThePageHoldsTheRunAndNoTextEndsItsScript) {
  const std::string page =
      ScheduleReport(*graph_, runner_->tile_times(), {.title = "two products", .policy = &kFifo, .workers = 2});
  const nlohmann::json data = Data(page);
  EXPECT_EQ(data.at("title"), "two products");
  EXPECT_EQ(data.at("policy"), "fifo");
  EXPECT_EQ(data.at("slices").size(), graph_->compiled().tiles.size());
  EXPECT_EQ(data.at("nodes").size(), graph_->compiled().calls.size());
  EXPECT_EQ(data.at("live").back().at(1), 0);
  for (const auto& level : data.at("live")) EXPECT_LE(level.at(1), data.at("planned"));
  EXPECT_EQ(data.at("ready").back().at(1), 0);
  EXPECT_LE(data.at("busy_us"), 2 * data.at("span_us").get<double>());
  EXPECT_GE(data.at("planned"), data.at("lower_bound"));
  double path = 0;
  bool deep = false;
  for (const auto& task : data.at("path")) {
    path += task.at(4).get<double>();
    deep |= data.at("nodes").at(task.at(0).get<size_t>()).at(1) == "</script> & \"deep\"";
  }
  EXPECT_TRUE(deep);
  EXPECT_LE(path, data.at("span_us"));
  double took = 0;
  for (const auto& kind : data.at("costs").at("kinds")) took += kind.at(2).get<double>();
  EXPECT_NEAR(took, data.at("busy_us"), 1);
}

// Messages do not count as work, and their lanes do not count as workers.
TEST_F(ScheduleReportTest, MessagesAreInLanesBelowTheWorkers) {
  RunRanks(2,
           [](Transport* transport) {
             const int peer = 1 - transport->rank();
             Tape tape;
             const Var x = tape.Input("x", {kF32, {64, 64}});
             const Var y = MatMul(x, x), sent = Send(y, {0, 1000}, {.peer = peer, .tag = 6});
             const Var received = Receive(y, 1000, {.peer = peer, .tag = 6});
             const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {received}, .update = {sent}});
             ASSERT_TRUE(graph.ok()) << graph.status();
             Parameters parameters;
             Runner runner(*graph, &parameters, {.threads = 1, .timed = true, .transport = transport});
             ASSERT_TRUE(runner.Run({{x, std::vector<float>(64 * 64, 0.5f)}}).ok());
             const nlohmann::json data = Data(ScheduleReport(*graph, runner.tile_times(), {}));
             EXPECT_EQ(data.at("workers"), 1);
             EXPECT_GE(data.at("communication_us"), 2e3);
             EXPECT_LE(data.at("hidden_us"), data.at("communication_us"));
             EXPECT_LE(data.at("busy_us").get<double>(), data.at("span_us").get<double>() - 2e3);
             for (const auto& slice : data.at("slices")) {
               const auto& node = data.at("nodes").at(slice.at(3).get<size_t>());
               EXPECT_EQ(slice.at(0), node.at(0) == "send" ? -1 : node.at(0) == "receive" ? -2 : 0);
               if (node.at(0) == "matmul") continue;
               EXPECT_EQ(node.at(4), 4000);
               EXPECT_EQ(node.at(6), absl::StrCat(node.at(0) == "send" ? "to" : "from", " rank ", peer, ", tag 6"));
             }
             for (const auto& kind : data.at("costs").at("kinds")) EXPECT_EQ(kind.at(0), "matmul f32");
           },
           {.latency_seconds = 2e-3});
}

TEST_F(ScheduleReportTest, WhatIsFreeShortensTheRunAndTheLongestFirst) {
  const CompiledGraph& compiled = graph_->compiled();
  const auto name = [&](uint32_t call) {
    return std::string(compiled.program.node(compiled.calls[call].node).op->name);
  };
  std::vector<TileTime> tiles(compiled.tiles.size());
  for (uint32_t s = 0; s < compiled.calls.size(); ++s) {
    for (uint32_t t = 0; t < compiled.calls[s].tile_count; ++t) {
      tiles[compiled.calls[s].first_tile + t].end = name(s) == "matmul" ? 1'000'000 : 10'000;
    }
  }
  const FreeNodes free = FindFreeNodes(*graph_, tiles, kCriticalPath, 2, 3);
  ASSERT_EQ(free.nodes.size(), 3u);
  for (int i : {0, 1}) EXPECT_EQ(name(free.nodes[i].call), "matmul");
  double before = 0;
  for (const FreeNode& node : free.nodes) {
    EXPECT_GE(node.makespan, before);
    EXPECT_LT(node.makespan, free.makespan);
    before = node.makespan;
  }
}

}  // namespace
}  // namespace weft
