#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/graph/compile.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/attention/attention.h"
#include "weft/ops/ops.h"
#include "weft/tests/op_names.h"

namespace weft {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

constexpr double kHidden = -std::numeric_limits<double>::infinity();
constexpr int64_t kRows = 4, kHeads = 2, kGroups = 1, kWidth = 8;

struct Parts {
  int64_t page = kCachePage, targets = 1;
  bool other_pages = false;  // values are read from other pages than keys
  bool hides = true;         // positions after a row's own are hidden
  double window = 0;         // positions that a row sees, with its own; 0: all
};

// Compiles attention of one token of each row to three pages.
absl::StatusOr<Graph> CompileParts(const Parts& parts) {
  Tape tape;
  const Var query = tape.Input("query", {kF32, {kRows, kHeads, parts.targets, kWidth}});
  const TensorType cache = {kF32, {9, kGroups, parts.page, kWidth}};
  const Var keys = tape.State("keys", cache, Zeros()), values = tape.State("values", cache, Zeros());
  const Var pages = tape.Input("pages", {kI32, {kRows, 3}}, {.below = 9});
  const Var others = tape.Input("others", {kI32, {kRows, 3}}, {.below = 9});
  const Var positions = tape.Input("positions", {kI32, {kRows, 1}}, {.below = 3 * parts.page, .ignored = -1});
  const int64_t sources = 3 * parts.page, together = kHeads * parts.targets;
  Var scores =
      MatMul(Reshape(query, {kRows, kGroups, together, kWidth}), ReadPages(keys, pages), {.transpose_b = true});
  scores = Reshape(scores, {kRows, kHeads, parts.targets, sources});
  const Var position = Cast(Reshape(positions, {kRows, 1, 1, 1}), kF32), source = Iota(&tape, kF32, sources);
  if (parts.window > 0) {
    scores = MaskFill(scores, Less(source, position + (1 - parts.window)), kHidden);
  }
  if (parts.hides) scores = MaskFill(scores, Less(position, source), kHidden);
  const Var weights = Reshape(Softmax(scores), {kRows, kGroups, together, sources});
  const Var y = MatMul(weights, ReadPages(values, parts.other_pages ? others : pages));
  return Compile(tape, {.fetch = {y}, .mode = kEval});
}

std::vector<std::string> OpsOf(const Parts& parts) {
  const absl::StatusOr<Graph> graph = CompileParts(parts);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return graph.ok() ? OpNames(graph->program()) : std::vector<std::string>();
}

TEST(RaisePagedAttentionTest, ReadsPagesWhereTheyAre) {
  for (const int64_t page : {int64_t{1}, int64_t{32}, kCachePage}) {
    const std::vector<std::string> ops = OpsOf({.page = page});
    EXPECT_THAT(ops, Contains("paged_attention"));
    EXPECT_THAT(ops, Not(Contains("embedding"))) << "which copies pages";
    EXPECT_THAT(ops, Not(Contains("less"))) << "which makes a mask";
  }
}

TEST(RaisePagedAttentionTest, ReadsOnlyTheWindow) {
  for (const int window : {1, 5}) {
    const absl::StatusOr<Graph> graph = CompileParts({.window = static_cast<double>(window)});
    ASSERT_TRUE(graph.ok()) << graph.status();
    EXPECT_THAT(OpNames(graph->program()), Not(Contains("less"))) << "which makes a mask";
    std::vector<int32_t> limits;
    for (const Node& node : graph->program().nodes) {
      if (node.op == &kPagedAttention) limits.push_back(node.attrs.as<AttentionAttrs>().left);
    }
    EXPECT_THAT(limits, ElementsAre(window - 1));
  }
}

TEST(RaisePagedAttentionTest, KeepsMasksThatAreNoWindows) {
  for (const double window : {0.5, 4.5}) {
    const std::vector<std::string> ops = OpsOf({.window = window});
    EXPECT_THAT(ops, Contains("paged_attention"));
    EXPECT_THAT(ops, Contains("less"));
  }
}

TEST(RaisePagedAttentionTest, LeavesOtherFormsAlone) {
  for (const Parts& parts :
       {Parts{.page = 65}, {.targets = 2}, {.other_pages = true}, {.hides = false}, {.hides = false, .window = 5}}) {
    const std::vector<std::string> ops = OpsOf(parts);
    EXPECT_THAT(ops, Not(Contains("paged_attention")));
    EXPECT_THAT(ops, Contains("attention"));
  }
}

}  // namespace
}  // namespace weft
