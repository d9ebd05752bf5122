#include "weft/bench/schedule/metg.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

TEST(MetgTest, IsWhereTheCurveReachesHalf) {
  EXPECT_NEAR(*Metg({.points = {{0.1, 0.1}, {0.4, 0.4}, {1.6, 0.6}, {6.4, 0.9}}}), 0.8, 1e-12);
  EXPECT_NEAR(*Metg({.points = {{0.1, 0.1}, {0.4, 0.5}}}), 0.4, 1e-12);
  EXPECT_EQ(*Metg({.points = {{0.1, 0.7}, {0.2, 0.8}}}), 0.1);
  EXPECT_EQ(Metg({.points = {{0.1, 0.2}, {100, 0.49}}}), std::nullopt);
}

TEST(MetgTest, PrintsRows) {
  const EfficiencyCurve curve = {.graph = "fft", .policy = "fifo", .nodes = 64, .threads = 2, .points = {{1, 0.5}}};
  EXPECT_EQ(MetgHeader(), "graph          nodes policy                 threads  metg_us\n");
  EXPECT_EQ(PrintMetg(curve), "fft               64 fifo                         2    1.000\n");
  EXPECT_EQ(PrintMetgJson(curve),
            "{\"graph\":\"fft\",\"nodes\":64,\"threads\":2,\"policy\":\"fifo\",\"metg_us\":1.0,"
            "\"efficiency\":[[1.0,0.5]]}\n");
  EXPECT_THAT(PrintMetg({.points = {{1, 0.1}}}), testing::EndsWith(" -\n"));
}

}  // namespace
}  // namespace weft
