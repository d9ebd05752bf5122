#include <cstring>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/graph/compile/compile.h"
#include "weft/ops/ops.h"
#include "weft/tests/op_names.h"
#include "weft/tests/random_program.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr size_t kValue = 64 * 64 * sizeof(float);

// A Ladder has exp(x), `rungs` tanh nodes, and products that read their inputs in the opposite order, as a backward
// pass does.
struct Ladder {
  explicit Ladder(int rungs) {
    VarList values = {Exp(x)};
    for (int i = 0; i < rungs; ++i) values.push_back(Tanh(values.back()));
    y = values.back();
    for (int i = rungs; i-- > 0;) y = MatMul(y, values[i]);
  }

  Tape tape;
  Var x = tape.Input("x", {kF32, {64, 64}});
  Var y;
};

TEST(RematerialiseTest, ComputesAgainBeforeTheFirstReaderAfterTheGap) {
  const Ladder ladder(3);
  EXPECT_THAT(OpNames(Compile(ladder.tape, {.fetch = {ladder.y}})->program()),
              ElementsAre("input", "exp", "tanh", "tanh", "tanh", "matmul", "matmul", "matmul"));
  const absl::StatusOr<Graph> graph = Compile(ladder.tape, {.fetch = {ladder.y}, .memory_budget = 4 * kValue});
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_LE(graph->compiled().memory.planned, 4 * kValue);
  EXPECT_THAT(OpNames(graph->program()),
              ElementsAre("input", "exp", "tanh", "tanh", "tanh", "matmul", "matmul", "exp", "matmul"));
  EXPECT_GT(graph->compiled().memory.recomputed, 0);
}

TEST(RematerialiseTest, DoesNothingWithinTheBudget) {
  const Ladder ladder(10);
  const absl::StatusOr<Graph> free = Compile(ladder.tape, {.fetch = {ladder.y}});
  ASSERT_TRUE(free.ok()) << free.status();
  const size_t planned = free->compiled().memory.planned;
  const absl::StatusOr<Graph> same = Compile(ladder.tape, {.fetch = {ladder.y}, .memory_budget = planned});
  ASSERT_TRUE(same.ok()) << same.status();
  EXPECT_EQ(OpNames(same->program()), OpNames(free->program()));
  EXPECT_EQ(same->compiled().memory.recomputed, 0);
}

TEST(RematerialiseTest, GivesTheMinimumWhichIsThenEnough) {
  const Ladder ladder(40);
  const absl::StatusOr<Graph> none = Compile(ladder.tape, {.fetch = {ladder.y}, .memory_budget = 1});
  EXPECT_EQ(none.status().code(), absl::StatusCode::kResourceExhausted);
  const std::string message(none.status().message());
  ASSERT_THAT(message, HasSubstr("memory_budget is 1 bytes, but the minimum for the values of this graph is "));
  const size_t minimum = std::stoul(message.substr(message.find("graph is ") + std::strlen("graph is ")));
  EXPECT_LT(minimum, 20 * kValue);
  const absl::StatusOr<Graph> graph = Compile(ladder.tape, {.fetch = {ladder.y}, .memory_budget = minimum});
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->compiled().memory.planned, minimum);
  EXPECT_FALSE(Compile(ladder.tape, {.fetch = {ladder.y}, .memory_budget = minimum - 1}).ok());
}

TEST(RematerialiseTest, NothingIsComputedAgainFromAStateThatWasWritten) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {64, 64}});
  const Var w = tape.State("w", {kF32, {64, 64}}, Zeros());
  const Var old = Exp(w);  // can only be kept
  Var y = MatMul(x, old);
  const Var written = Assign(w, y);
  VarList kept;
  for (int i = 0; i < 6; ++i) kept.push_back(y = Tanh(y));
  for (int i = 5; i-- > 0;) y = MatMul(y, kept[i]);
  y = y + old;
  const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {y}, .update = {written}, .memory_budget = 6 * kValue});
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_THAT(OpNames(graph->program()), ::testing::Not(::testing::Contains("copy")));
}

TEST(RematerialiseTest, RandomProgramsGiveTheSameBits) {
  int changed = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Tape tape;
    const auto [fetch, updates] = RecordRandomProgram(seed, &tape);
    const absl::StatusOr<Graph> whole = Compile(tape, {.fetch = fetch, .update = updates});
    ASSERT_TRUE(whole.ok()) << whole.status();
    const size_t planned = whole->compiled().memory.planned;
    for (const double fraction : {0.9, 0.75}) {
      const size_t budget = static_cast<size_t>(fraction * static_cast<double>(planned));
      const absl::StatusOr<Graph> less = Compile(tape, {.fetch = fetch, .update = updates, .memory_budget = budget});
      if (!less.ok()) {
        EXPECT_THAT(less.status().message(), HasSubstr("the minimum"));
        break;
      }
      EXPECT_LE(less->compiled().memory.planned, budget);
      changed += less->compiled().memory.recomputed > 0;
      ASSERT_EQ(RunTwice(*whole, tape, fetch, {.threads = 1}),
                RunTwice(*less, tape, fetch, {.threads = 1 + static_cast<int>(seed % 4)}));
    }
  }
  EXPECT_GT(changed, 100);
}

}  // namespace
}  // namespace weft
