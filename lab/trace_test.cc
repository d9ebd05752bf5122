#include "weft/lab/trace.h"

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/graph/compile.h"
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
