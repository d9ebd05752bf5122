#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/graph/compile/compile.h"
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
  int64_t left = -1;         // the largest distance of a position that a row sees; -1: all
  bool cuts_mask = false;    // a fed mask, which hides positions after a row's own, too
  bool together = false;     // a row of the cache `keys` holds the keys, then the values
  double number = 0;         // another mask hides the positions before the row's own minus this number
};

// Compiles attention of one token of each row to three pages.
absl::StatusOr<Graph> CompileParts(const Parts& parts) {
  Tape tape;
  const Var query = tape.Input("query", {kF32, {kRows, kHeads, parts.targets, kWidth}});
  const TensorType cache = {kF32, {9, kGroups, parts.page, parts.together ? 2 * kWidth : kWidth}};
  const Var keys = tape.State("keys", cache, Zeros()), values = tape.State("values", cache, Zeros());
  const Var pages = tape.Input("pages", {kI32, {kRows, 3}}, {.below = 9});
  const Var others = tape.Input("others", {kI32, {kRows, 3}}, {.below = 9});
  const Var positions =
      tape.Input("positions", {kI32, {kRows, parts.targets}}, {.below = 3 * parts.page, .ignored = -1});
  const int64_t sources = 3 * parts.page, together = kHeads * parts.targets;
  VarList read = {ReadPages(keys, pages), ReadPages(values, parts.other_pages ? others : pages)};
  if (parts.together) read = Split(read[0], -1, 2);
  Var scores = MatMul(Reshape(query, {kRows, kGroups, together, kWidth}), read[0], {.transpose_b = true});
  scores = Reshape(scores, {kRows, kHeads, parts.targets, sources});
  if (parts.number > 0) {
    const Var position = Cast(Reshape(positions, {kRows, 1, parts.targets, 1}), kF32);
    scores = MaskFill(scores, Less(Iota(&tape, kF32, sources), position - parts.number), kHidden);
  }
  if (parts.cuts_mask) {
    const Var mask = tape.Input("mask", {kBool, {kRows, 1, 1, sources}});
    scores = MaskFill(scores, BandMask(mask, -1, 0, 1, positions), kHidden);
  }
  scores = BandMask(scores, parts.left, parts.hides ? 0 : 3, kHidden, positions);
  const Var weights = Reshape(Softmax(scores), {kRows, kGroups, together, sources});
  const Var y = MatMul(weights, read[1]);
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
    EXPECT_THAT(ops, Not(Contains("band_mask")));
  }
}

TEST(RaisePagedAttentionTest, ReadsOnlyTheWindow) {
  for (const int left : {0, 4}) {
    const absl::StatusOr<Graph> graph = CompileParts({.left = left});
    ASSERT_TRUE(graph.ok()) << graph.status();
    EXPECT_THAT(OpNames(graph->program()), Not(Contains("band_mask")));
    std::vector<int32_t> limits;
    for (const Node& node : graph->program().nodes) {
      if (node.op == &kPagedAttention) limits.push_back(node.attrs.as<AttentionAttrs>().left);
    }
    EXPECT_THAT(limits, ElementsAre(left));
  }
}

TEST(RaisePagedAttentionTest, KeepsOtherMasks) {
  const std::vector<std::string> ops = OpsOf({.number = 4.5});
  EXPECT_THAT(ops, Contains("paged_attention"));
  EXPECT_THAT(ops, Contains("less"));
}

TEST(RaisePagedAttentionTest, LeavesOtherFormsAlone) {
  for (const Parts& parts : {Parts{.page = 65},
                             {.targets = 2},
                             {.other_pages = true},
                             {.together = true},
                             {.hides = false},
                             {.hides = false, .left = 4},
                             {.hides = false, .cuts_mask = true}}) {
    const std::vector<std::string> ops = OpsOf(parts);
    EXPECT_THAT(ops, Not(Contains("paged_attention")));
    EXPECT_THAT(ops, Contains("attention"));
  }
}

}  // namespace
}  // namespace weft
