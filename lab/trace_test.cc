// Tests ChromeTrace.
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/distributed/in_process.h"
#include "weft/distributed/message_ops.h"
#include "weft/graph/compile/compile.h"
#include "weft/lab/measured.h"
#include "weft/lab/schedule_report.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

TEST(TraceTest, HasASliceForEachTileAndCountersThatEndAtZero) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {512, 512}}), w = tape.Parameter("w", {kF32, {512, 512}}, Gaussian(0.1f));
  Var y;
  {
    const Scope scope(&tape, "a \"quoted\" scope");
    y = Exp(MatMul(Tanh(x), w)) + Sum(x);
  }
  const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {Sum(y)}, .without = {Pass::kFuse}});
  ASSERT_TRUE(graph.ok()) << graph.status();
  Parameters parameters({.seed = 1});
  Runner runner(*graph, &parameters, {.threads = 2, .timed = true});
  const std::vector<float> values(512 * 512, 0.5f);
  for (int run = 0; run < 2; ++run) ASSERT_TRUE(runner.Run({{x, values}}).ok());
  const nlohmann::json trace = nlohmann::json::parse(ChromeTrace(*graph, runner.tile_times()));

  std::map<std::string, int> slices;
  std::map<std::string, int64_t> counters;
  std::map<int, std::map<double, double>> lanes;  // slices of one worker do not overlap: begin → duration
  int critical = 0;
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("ph") == "C") counters[event.at("name")] = event.at("args").front();
    if (event.at("ph") != "X") continue;
    ++slices[event.at("name")];
    critical += event.at("args").at("critical") == true;
    EXPECT_GE(event.at("ts"), 0);
    EXPECT_GE(event.at("dur"), 0);
    lanes[event.at("tid")][event.at("ts")] = event.at("dur");
    if (event.at("name") != "matmul") continue;
    EXPECT_EQ(event.at("args").at("scope"), "a \"quoted\" scope");
    EXPECT_EQ(event.at("args").at("types"), "f32[512,512] f32[512,512] -> f32[512,512]");
    EXPECT_GT(event.at("args").at("gflops"), 0);
  }
  const CompiledGraph& compiled = graph->compiled();
  size_t tiles = 0;
  for (const auto& [op, count] : slices) tiles += static_cast<size_t>(count);
  EXPECT_EQ(tiles, compiled.tiles.size());
  EXPECT_GT(slices["matmul"], 1);
  EXPECT_GT(critical, 2);
  EXPECT_LE(lanes.size(), 2u);
  for (const auto& [lane, by_begin] : lanes) {
    double end = 0;
    for (const auto& [begin, duration] : by_begin) {
      EXPECT_GE(begin, end - 1e-3);
      end = begin + duration;
    }
  }
  EXPECT_EQ(counters.at("ready tasks"), 0);
  EXPECT_EQ(counters.at("live values"), 0);
}

// Two ranks exchange two ranges of a product, at the same time as a further product.
TEST(TraceTest, MessagesHaveLanesOfTheirOwn) {
  RunRanks(2,
           [](Transport* transport) {
             const int peer = 1 - transport->rank();
             Tape tape;
             const Var x = tape.Input("x", {kF32, {64, 64}});
             const Var y = MatMul(x, x), z = MatMul(x, y);
             VarList sends, fetches = {z};
             for (const int tag : {6, 7}) {
               sends.push_back(Send(y, {0, 1000}, {.peer = peer, .tag = tag}));
               fetches.push_back(Receive(y, 1000, {.peer = peer, .tag = tag}));
             }
             const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = fetches, .update = sends});
             ASSERT_TRUE(graph.ok()) << graph.status();
             Parameters parameters;
             Runner runner(*graph, &parameters, {.threads = 1, .timed = true, .transport = transport});
             ASSERT_TRUE(runner.Run({{x, std::vector<float>(64 * 64, 0.5f)}}).ok());
             const nlohmann::json trace = nlohmann::json::parse(ChromeTrace(*graph, runner.tile_times()));
             std::map<int, std::string> lanes;
             std::multiset<std::string> messages;
             for (const auto& event : trace.at("traceEvents")) {
               if (event.at("ph") == "M") lanes[event.at("tid")] = event.at("args").at("name");
             }
             for (const auto& event : trace.at("traceEvents")) {
               if (event.at("ph") != "X") continue;
               const std::string lane = lanes.at(event.at("tid"));
               if (event.at("name") == "matmul") {
                 EXPECT_EQ(lane, "worker 0");
                 continue;
               }
               EXPECT_EQ(lane.substr(0, lane.find(' ')), event.at("name") == "send" ? "sends" : "receives");
               EXPECT_EQ(event.at("args").at("peer"), peer);
               EXPECT_EQ(event.at("args").at("bytes"), 4000);
               messages.insert(event.at("name").get<std::string>() + " " + event.at("args").at("tag").dump());
             }
             EXPECT_THAT(messages, testing::ElementsAre("receive 6", "receive 7", "send 6", "send 7"));
             EXPECT_GT(Timeline(*graph, runner.tile_times()).communication().communication_seconds, 1e-3);
           },
           {.latency_seconds = 2e-3});
}

TEST(TraceTest, TimesAreThoseOfTheLastRun) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {64}});
  const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {Tanh(x)}});
  ASSERT_TRUE(graph.ok()) << graph.status();
  Parameters parameters;
  Runner untimed(*graph, &parameters), timed(*graph, &parameters, {.timed = true});
  const std::vector<float> values(64);
  ASSERT_TRUE(untimed.Run({{x, values}}).ok());
  EXPECT_TRUE(untimed.tile_times().empty());
  ASSERT_TRUE(timed.Run({{x, values}}).ok());
  ASSERT_EQ(timed.tile_times().size(), 1u);
  EXPECT_GT(timed.tile_times()[0].end, timed.tile_times()[0].begin);
  EXPECT_EQ(timed.tile_times()[0].worker, 0);
}

}  // namespace
}  // namespace weft
