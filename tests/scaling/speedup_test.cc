// Holds the maximum speedup of each named graph by the cost model: its work divided by its longest path.
#include "weft/graph/speedup.h"

#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "weft/graph/compile.h"
#include "weft/lab/real_graphs.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

TEST(SpeedupTest, TheMaximumSpeedupOfEachGraphHolds) {
  // The path of the towers is a deep chain of small products, and that of the LSTM a chain over 64 tokens.
  const struct {
    const char* name;
    double ratio;
  } rows[] = {{"gpt2", 140},       {"bert", 200},   {"babygpt", 65}, {"charcpu", 16}, {"minilm-forward", 64},
              {"transformer", 93}, {"towers", 6.8}, {"lstm", 16},    {"encoder", 26}};
  ASSERT_EQ(RealGraphNames().size(), std::size(rows));
  for (const auto& [name, ratio] : rows) {
    const absl::StatusOr<std::unique_ptr<RealGraph>> real = RecordRealGraph(name);
    ASSERT_TRUE(real.ok()) << real.status();
    const absl::StatusOr<Graph> graph = Compile(*(*real)->tape, (*real)->options);
    ASSERT_TRUE(graph.ok()) << graph.status();
    EXPECT_GE(SpeedupOf(*graph).ratio(), ratio) << name << "; see weft graph --explain";
  }
}

// `chains` chains of `depth` squares of a matrix. Each product waits for the whole one before it.
absl::StatusOr<Graph> Chains(int chains, int depth) {
  Tape tape;
  VarList fetched;
  for (int c = 0; c < chains; ++c) {
    Var x = tape.Input("x" + std::to_string(c), {kF32, {64, 64}});
    for (int i = 0; i < depth; ++i) x = MatMul(x, x);
    fetched.push_back(x);
  }
  return Compile(tape, {.fetch = fetched});
}

TEST(SpeedupTest, AGraphIsWorthAsManyWorkersAsHaveWork) {
  const absl::StatusOr<Graph> chain = Chains(1, 20), four = Chains(4, 20), many = Chains(200, 2);
  ASSERT_TRUE(chain.ok() && four.ok() && many.ok());
  EXPECT_EQ(UsefulWorkers(*chain, 16), 1);
  EXPECT_EQ(UsefulWorkers(*four, 2), 2);
  EXPECT_GE(UsefulWorkers(*four, 64), 4);
  EXPECT_LE(UsefulWorkers(*four, 64), 32);
  EXPECT_EQ(UsefulWorkers(*many, 48), 48);
  // Eight workers divide this product, and fewer do not.
  Tape tape;
  const Var x = tape.Input("x", {kF32, {128, 4096}}), w = tape.Input("w", {kF32, {4096, 256}});
  const absl::StatusOr<Graph> product = Compile(tape, {.fetch = {MatMul(x, w)}});
  ASSERT_TRUE(product.ok()) << product.status();
  EXPECT_EQ(UsefulWorkers(*product, 4), 1);
  EXPECT_GE(UsefulWorkers(*product, 16), 8);
}

}  // namespace
}  // namespace weft
