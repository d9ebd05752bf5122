#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/compile/stages.h"
#include "weft/graph/compile/storage.h"
#include "weft/ops/ops.h"
#include "weft/tests/random_program.h"

namespace weft {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using Names = std::vector<std::string>;

Graph CompileOrDie(const Tape& tape, const CompileOptions& options) {
  absl::StatusOr<Graph> graph = Compile(tape, options);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

// The names of the ops of each group, in their order.
std::vector<Names> Groups(const Graph& graph) {
  std::vector<Names> groups;
  for (const Group& group : graph.compiled().groups) {
    groups.emplace_back();
    for (uint32_t s = group.first_call; s < group.end_call(); ++s) {
      groups.back().push_back(graph.program().node(graph.compiled().calls[s].node).op->name);
    }
  }
  return groups;
}

// A product of many tiles, with columns cut, too.
struct Product {
  Tape tape;
  Var x = tape.Input("x", {kF32, {256, 512}});
  Var w = tape.Input("w", {kF32, {512, 1024}});
  Var y = MatMul(x, w);
};

TEST(FuseTest, BiasAndActivationRunInTheTilesOfTheProduct) {
  Product product;
  const Var bias = product.tape.Input("bias", {kF32, {1024}});
  const Graph graph = CompileOrDie(product.tape, {.fetch = {Gelu(product.y + bias)}});
  EXPECT_THAT(Groups(graph), ElementsAre(ElementsAre("matmul", "add", "gelu")));
  const CompiledGraph& compiled = graph.compiled();
  EXPECT_GT(compiled.tiles_of(0)[0].cols(), 0);
  EXPECT_LT(compiled.tiles_of(0)[0].cols(), 1024);
  EXPECT_EQ(compiled.tiles_of(0), compiled.tiles_of(2));
  EXPECT_EQ(compiled.tasks.size(), compiled.groups[0].tile_count);
  const Graph apart = CompileOrDie(product.tape, {.fetch = {Gelu(product.y + bias)}, .without = {Pass::kFuse}});
  EXPECT_EQ(apart.compiled().tiles_of(0), compiled.tiles_of(0));
}

TEST(FuseTest, AResidualJoinsTheProductThatComesLast) {
  Tape tape;
  const Var stream = Tanh(tape.Input("stream", {kF32, {256, 1024}}));
  const Var y = MatMul(tape.Input("x", {kF32, {256, 512}}), tape.Input("w", {kF32, {512, 1024}}));
  const Graph graph = CompileOrDie(tape, {.fetch = {stream + y}});
  EXPECT_THAT(Groups(graph), ElementsAre(ElementsAre("tanh"), ElementsAre("matmul", "add")));
}

TEST(FuseTest, ANormJoinsWholeRowsOnly) {
  Product product;
  const Graph columns = CompileOrDie(product.tape, {.fetch = {Softmax(product.y)}});
  EXPECT_THAT(Groups(columns), ElementsAre(ElementsAre("matmul"), ElementsAre("softmax")));
  Tape tape;
  const Var y = MatMul(tape.Input("x", {kF32, {1024, 256}}), tape.Input("w", {kF32, {256, 128}}));
  const Graph rows = CompileOrDie(tape, {.fetch = {Softmax(y)}});
  EXPECT_GT(rows.compiled().groups[0].tile_count, 1u);
  EXPECT_THAT(Groups(rows), ElementsAre(ElementsAre("matmul", "softmax")));
}

// The product reads whole rows of its first factor, and its tiles are fixed. Tanh and softmax take these tiles.
TEST(FuseTest, MembersTakeTheTilesOfAProductThatReadsThem) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {1024, 256}}), w = tape.Input("w", {kF32, {256, 128}});
  const Graph graph = CompileOrDie(tape, {.fetch = {MatMul(Softmax(Tanh(x)), w)}});
  const Graph apart = CompileOrDie(tape, {.fetch = {MatMul(Softmax(Tanh(x)), w)}, .without = {Pass::kFuse}});
  EXPECT_THAT(Groups(graph), ElementsAre(ElementsAre("tanh", "softmax", "matmul")));
  EXPECT_EQ(graph.compiled().tiles_of(2), apart.compiled().tiles_of(2));
  EXPECT_EQ(graph.compiled().tiles_of(0)[1].row_begin, graph.compiled().tiles_of(2)[1].row_begin);
  EXPECT_EQ(graph.compiled().tiles_of(0)[1].cols(), 256);
}

TEST(FuseTest, AProductOfAllRowsStaysApart) {
  Product product;
  const Var square = MatMul(product.y, product.y, {.transpose_a = true});
  EXPECT_THAT(Groups(CompileOrDie(product.tape, {.fetch = {square}})),
              ElementsAre(ElementsAre("matmul"), ElementsAre("matmul")));
}

TEST(FuseTest, SmallChainsAreOneTaskAndBranchesStayParallel) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {64, 128}});  // 13 µs an op
  const Var stem = Tanh(Exp(x));
  const Var left = Tanh(Exp(stem)), right = Softmax(Log(stem));
  const std::vector<Names> groups = Groups(CompileOrDie(tape, {.fetch = {MatMul(left, right, {.transpose_b = true})}}));
  EXPECT_THAT(groups, ElementsAre(ElementsAre("exp", "tanh"), ElementsAre("exp", "tanh"),
                                  ElementsAre("log", "softmax", "matmul")));
}

TEST(FuseTest, ATaskHasALargestSize) {
  Tape tape;
  Var x = tape.Input("x", {kF32, {128, 128}});
  for (int i = 0; i < 100; ++i) x = Tanh(x);
  const Graph graph = CompileOrDie(tape, {.fetch = {x}});
  EXPECT_GT(graph.compiled().groups.size(), 5u);
  EXPECT_LT(graph.compiled().groups.size(), 50u);
}

TEST(FuseTest, SmallUpdatesAreBatched) {
  Tape tape;
  const Var rate = Exp(tape.Input("rate", {kF32, {}}));
  VarList updates;
  for (int i = 0; i < 8; ++i) {
    const Var weight = tape.Parameter("w" + std::to_string(i), {kF32, {128}}, Zeros());
    updates.push_back(Assign(weight, weight * rate));
  }
  const std::vector<Names> groups = Groups(CompileOrDie(tape, {.update = updates}));
  EXPECT_THAT(groups, Contains(Names(8, "assign")));
}

TEST(FuseTest, AWriteDoesNotOvertakeAReader) {
  for (const bool read_late : {false, true}) {
    Tape tape;
    const Var x = tape.Input("x", {kF32, {1024, 256}});
    const Var w = tape.State("w", {kF32, {1024, 256}}, Zeros());
    const Var y = Tanh(x);
    const Var late = read_late ? Softmax(w) : y;
    const Var written = Assign(w, y);
    const std::vector<Names> groups = Groups(CompileOrDie(tape, {.fetch = {late}, .update = {written}}));
    if (read_late) {
      EXPECT_THAT(groups, Contains(Names{"assign"}));
    } else {
      EXPECT_THAT(groups, Contains(Names{"tanh", "assign"}));
    }
  }
}

TEST(FuseTest, GivesTheSameBitsOnAnyNumberOfThreads) {
  size_t joined = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Tape tape;
    const auto [fetch, updates] = RecordRandomProgram(seed, &tape);
    CompileOptions options = {
        .fetch = fetch, .update = updates, .without = {Pass::kFuse}, .tile_seconds = 1e-7 * (1 + seed % 32)};
    const Graph apart = CompileOrDie(tape, options);
    options.without = {};
    const Graph together = CompileOrDie(tape, options);
    for (const Group& group : together.compiled().groups) joined += group.tile_count > 1 && group.call_count > 1;
    const std::vector<std::byte> wanted = RunTwice(apart, tape, fetch, {.threads = 1});
    ASSERT_EQ(RunTwice(together, tape, fetch, {.threads = 1}), wanted);
    ASSERT_EQ(RunTwice(together, tape, fetch, {.threads = 2 + static_cast<int>(seed % 3)}), wanted);
  }
  EXPECT_GT(joined, 1000u);
}

}  // namespace
}  // namespace weft
