#include "weft/lab/timeline.h"

#include <map>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/graph/compile.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

using testing::ElementsAre;
using testing::Pair;

// Three products, each of one tile and in its own task. The second and third read the first.
TEST(TimelineTest, SaysWhatWasReadyWhatLivedAndWhatHeldTheRunUp) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {16, 16}});
  const Var a = MatMul(x, x), b = MatMul(a, x), c = MatMul(x, a);
  const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {b, c}, .without = {Pass::kFuse}});
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_EQ(graph->compiled().tiles.size(), 3u);
  const std::vector<TileTime> tiles = {{10, 110, 0}, {120, 220, 0}, {130, 330, 1}};
  const Timeline timeline(*graph, tiles);
  EXPECT_EQ(timeline.workers(), 2);
  EXPECT_EQ(timeline.end(), 330);
  EXPECT_EQ(timeline.ready(1), 110);
  EXPECT_EQ(timeline.period(2).begin, 130);
  EXPECT_THAT(timeline.critical_path(), ElementsAre(0, 2));
  EXPECT_THAT(timeline.ReadyTasks(), ElementsAre(Pair(0, 1), Pair(10, 0), Pair(110, 2), Pair(120, 1), Pair(130, 0)));
  const std::map<int64_t, int64_t> live = timeline.LiveBytes();
  EXPECT_EQ(live.at(10), 1024);
  EXPECT_EQ(live.at(120), 2048);
  EXPECT_EQ(live.at(130), 3072);
  EXPECT_EQ(live.rbegin()->second, 0);
}

// A value that overwrites its input takes no additional bytes.
TEST(TimelineTest, BytesThatTwoValuesShareCountOnce) {
  Tape tape;
  Var y = MatMul(tape.Input("x", {kF32, {16, 16}}), tape.Input("w", {kF32, {16, 16}}));
  for (int i = 0; i < 3; ++i) y = Tanh(y);
  const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {y}, .without = {Pass::kFuse}});
  ASSERT_TRUE(graph.ok()) << graph.status();
  std::vector<TileTime> tiles;
  for (int64_t t = 0; t < 4; ++t) tiles.push_back({t * 10, t * 10 + 10, 0});
  ASSERT_EQ(graph->compiled().tiles.size(), tiles.size());
  for (const auto& [time, bytes] : Timeline(*graph, tiles).LiveBytes()) EXPECT_LE(bytes, 1024) << time;
}

}  // namespace
}  // namespace weft
