#include <algorithm>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/compile/stages.h"
#include "weft/graph/run/runner.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

Graph CompileOrDie(const Tape& tape, const CompileOptions& options) {
  absl::StatusOr<Graph> graph = Compile(tape, options);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

TEST(DivideTest, RectanglesOfARangeHoldItsParts) {
  const Rect tile = {64, 64 + 100, 128, 128 + 200};
  for (const Group group : {Group{.part_rows = 32, .part_cols = 64}, Group{.part_rows = 30, .part_cols = 0},
                            Group{.part_rows = 200, .part_cols = 10}}) {
    const uint32_t parts = PartCount(group, tile);
    for (uint32_t begin = 0; begin < parts; ++begin) {
      for (uint32_t end = begin + 1; end <= parts; ++end) {
        std::vector<int> whole(100 * 200), single(100 * 200);
        int rects = 0;
        const auto mark = [&](std::vector<int>* times) {
          return [&, times](Rect rect) {
            ++rects;
            for (int64_t r = rect.row_begin; r < rect.row_end; ++r) {
              for (int64_t c = rect.col_begin; c < rect.col_end; ++c) ++(*times)[(r - 64) * 200 + c - 128];
            }
          };
        };
        ForEachRect(group, tile, begin, end, mark(&whole));
        ASSERT_LE(rects, 3);
        for (uint32_t p = begin; p < end; ++p) ForEachRect(group, tile, p, p + 1, mark(&single));
        ASSERT_EQ(whole, single);
        ASSERT_EQ(*std::max_element(whole.begin(), whole.end()), 1);
      }
    }
  }
}

struct Product {
  Tape tape;
  Var x = tape.Input("x", {kF32, {256, 3072}});
  Var w = tape.Input("w", {kF32, {3072, 768}});
  Var y = MatMul(x, w);
};

// A token's product with a weight that is stored by rows: eight workers give the bits of one.
TEST(DivideTest, TheProductOfATokenIsDivided) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {1, 2048}}), w = tape.Parameter("w", {kF32, {2048, 2048}}, Gaussian(0.1f));
  const Var y = MatMul(x, w, {.transpose_b = true});
  const Graph graph = CompileOrDie(tape, {.fetch = {y}, .mode = kEval, .few_rows = 1});
  const CompiledGraph& compiled = graph.compiled();
  EXPECT_EQ(std::string(compiled.program.node(compiled.calls[0].node).op->name), "weight_matmul");
  EXPECT_GT(compiled.groups[0].part_cols, 0);
  std::vector<float> numbers(2048), wanted;
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i * 37 % 101) / 101 - 0.5f;
  for (const int threads : {1, 8}) {
    Parameters parameters;
    Runner runner(graph, &parameters, {.threads = threads});
    for (int run = 0; run < 20; ++run) {
      const absl::StatusOr<Outputs> outputs = runner.Run({{x, numbers}});
      ASSERT_TRUE(outputs.ok()) << outputs.status();
      const absl::Span<const float> got = (*outputs)[y].span<float>();
      if (wanted.empty()) wanted.assign(got.begin(), got.end());
      ASSERT_EQ(std::vector<float>(got.begin(), got.end()), wanted);
    }
  }
}

TEST(DivideTest, ALongProductIsDividedWithItsBiasAndActivation) {
  Product product;
  const Var bias = product.tape.Input("bias", {kF32, {768}});
  const Graph graph = CompileOrDie(product.tape, {.fetch = {Gelu(product.y + bias)}});
  const CompiledGraph& compiled = graph.compiled();
  ASSERT_EQ(compiled.groups.size(), 1u);
  EXPECT_EQ(compiled.groups[0].part_rows, 32);
  EXPECT_EQ(compiled.groups[0].part_cols, 64);
  uint32_t parts = 0;
  for (uint32_t t = 0; t < compiled.schedule.task_count; ++t) parts += compiled.schedule.PartsOf(t);
  EXPECT_EQ(parts, 8u * 12);
}

TEST(DivideTest, APartHasWholeRowsIfAnOpOfTheGroupNeedsThem) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {256, 20000}});
  const Graph graph = CompileOrDie(tape, {.fetch = {Softmax(x)}, .tile_seconds = 1e-2});
  const CompiledGraph& compiled = graph.compiled();
  ASSERT_EQ(compiled.groups.size(), 1u);
  EXPECT_GT(compiled.groups[0].part_rows, 0);
  EXPECT_EQ(compiled.groups[0].part_cols, 0);
}

TEST(DivideTest, ExecutionsGiveTheSameWithAndWithoutPartsAndTimes) {
  Product product;
  const Var result = Tanh(product.y);
  const Graph graph = CompileOrDie(product.tape, {.fetch = {result}});
  std::vector<float> x(256 * 3072), w(3072 * 768), wanted;
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 37 % 101) / 101 - 0.5f;
  for (size_t i = 0; i < w.size(); ++i) w[i] = static_cast<float>(i * 53 % 97) / 970 - 0.05f;
  for (const RunnerOptions& options : {RunnerOptions{.threads = 1}, RunnerOptions{.threads = 1, .timed = true},
                                       RunnerOptions{.threads = 8}, RunnerOptions{.threads = 8, .timed = true}}) {
    Parameters parameters;
    Runner runner(graph, &parameters, options);
    for (int run = 0; run < 3; ++run) {
      const absl::StatusOr<Outputs> outputs = runner.Run({{product.x, x}, {product.w, w}});
      ASSERT_TRUE(outputs.ok()) << outputs.status();
      const absl::Span<const float> y = (*outputs)[result].span<float>();
      if (wanted.empty()) wanted.assign(y.begin(), y.end());
      ASSERT_EQ(std::vector<float>(y.begin(), y.end()), wanted);
    }
  }
}

TEST(DivideTest, AShortTaskHasOnePart) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {64, 64}});
  const Graph graph = CompileOrDie(tape, {.fetch = {MatMul(x, x)}});
  EXPECT_TRUE(graph.compiled().schedule.parts.empty());
}

}  // namespace
}  // namespace weft
