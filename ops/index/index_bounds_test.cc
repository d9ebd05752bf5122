#include <string>

#include "gtest/gtest.h"
#include "weft/ops/attributes.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

std::string EmbeddingError(InputBounds bounds) {
  Tape tape;
  const Var table = tape.Input("table", {kF32, {5, 2}});
  Embedding(table, tape.Input("ids", {kI32, {3}}, bounds));
  return std::string(tape.status().message());
}

TEST(IndexBoundsTest, EmbeddingWantsRowsOnly) {
  const std::string end = "; there are 5 rows of the table; inputs i32[3]";
  const struct {
    InputBounds bounds;
    std::string error;
  } kCases[] = {
      {{.below = 1}, ""},
      {{.below = 5}, ""},
      {{}, "embedding: input 'ids' has no range, wanted below <= 5" + end},
      {{.below = 6}, "embedding: input 'ids' is declared with below = 6, wanted below <= 5" + end},
      {{.below = 5, .ignored = -1}, ""},
      {{.below = 5, .ignored = -2},
       "embedding: input 'ids' is declared with ignored = -2, wanted -1 as in the op" + end},
  };
  for (const auto& [bounds, error] : kCases) EXPECT_EQ(EmbeddingError(bounds), error);
}

std::string CrossEntropyError(InputBounds bounds) {
  Tape tape;
  const Var logits = tape.Input("logits", {kF32, {3, 5}});
  CrossEntropy(logits, tape.Input("targets", {kI32, {3}}, bounds), {.ignore_index = -1});
  return std::string(tape.status().message());
}

TEST(IndexBoundsTest, CrossEntropyWantsClassesAndItsIgnoreIndex) {
  const std::string end = "; there are 5 classes; inputs i32[3]";
  const struct {
    InputBounds bounds;
    std::string error;
  } kCases[] = {
      {{.below = 5}, ""},
      {{.below = 4, .ignored = -1}, ""},
      {{}, "cross_entropy: input 'targets' has no range, wanted below <= 5" + end},
      {{.below = 6, .ignored = -1},
       "cross_entropy: input 'targets' is declared with below = 6, wanted below <= 5" + end},
      {{.below = 5, .ignored = -100},
       "cross_entropy: input 'targets' is declared with ignored = -100, wanted -1 as in the op" + end},
  };
  for (const auto& [bounds, error] : kCases) EXPECT_EQ(CrossEntropyError(bounds), error);
}

TEST(IndexBoundsTest, WhatAGraphComputesNeedsNone) {
  Tape tape;
  const Var table = tape.Input("table", {kF32, {5, 2}}), x = tape.Input("x", {kF32, {3}});
  Embedding(table, Cast(x, kI32));
  EXPECT_TRUE(tape.status().ok()) << tape.status();
}

}  // namespace
}  // namespace weft
