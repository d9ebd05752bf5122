#include <map>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/distributed/message_ops.h"
#include "weft/graph/compile/compile.h"
#include "weft/lab/measured.h"
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

// Messages are hidden while at least one kernel runs. Overlapping kernels and messages count once.
TEST(TimelineTest, CommunicationIsHiddenWhileKernelsRun) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {16, 16}});
  const Var a = MatMul(x, x), b = MatMul(x, a);
  const Var sent = Send(a, {0, 256}, {.peer = 1, .tag = 6}), received = Receive(a, 256, {.peer = 1, .tag = 7});
  const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {b, received}, .update = {sent}});
  ASSERT_TRUE(graph.ok()) << graph.status();
  const CompiledGraph& compiled = graph->compiled();
  ASSERT_EQ(compiled.tiles.size(), 4u);
  std::vector<TileTime> tiles(4);
  uint32_t products = 0;
  for (const KernelCall& call : compiled.calls) {
    TileTime& tile = tiles[call.first_tile];
    if (call.messages.empty()) {
      tile = products++ == 0 ? TileTime{0, 100, 0} : TileTime{150, 250, 0};
    } else if (call.messages[0].sends) {
      tile = {100, 300, TileTime::kSendLane};
      EXPECT_EQ(MessageBytes(compiled, call), 1024);
    } else {
      tile = {120, 400, TileTime::kReceiveLane};
    }
  }
  const Timeline timeline(*graph, tiles);
  EXPECT_EQ(timeline.workers(), 1);
  EXPECT_NEAR(timeline.communication().communication_seconds, 300e-9, 1e-15);
  EXPECT_NEAR(timeline.communication().hidden_seconds, 100e-9, 1e-15);
}

}  // namespace
}  // namespace weft
