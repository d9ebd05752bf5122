// Holds the maximum speedup of each named graph by the cost model: its work divided by its longest path.
#include "weft/graph/speedup.h"

#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "weft/graph/compile.h"
#include "weft/lab/real_graphs.h"

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

}  // namespace
}  // namespace weft
