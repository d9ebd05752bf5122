#include "weft/graph/passes/matchers.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

using ::testing::ElementsAre;

TEST(MatchersTest, Numbers) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {2}});
  const float values[] = {0.5f, 0.5f, 3.0f};
  const auto constant = [&](int from, int64_t n) {
    return tape.Constant({{kF32, {n}}, reinterpret_cast<std::byte*>(const_cast<float*>(values + from))});
  };
  const Var half = constant(0, 2), other = constant(1, 2);
  const Var scaled = Scale(BroadcastTo(Reshape(Number(x, 3), {1}), {2}), 2);
  EXPECT_EQ(MatchNumber(tape.program(), half.id), 0.5);
  EXPECT_EQ(MatchNumber(tape.program(), scaled.id), 6.0);
  EXPECT_FALSE(MatchNumber(tape.program(), other.id).has_value());
  EXPECT_FALSE(MatchNumber(tape.program(), x.id).has_value());
}

TEST(MatchersTest, OneScaleInEachSpelling) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {2}}), half = Number(x, 0.5);
  for (const Var y : {Scale(x, 0.5), Mul(x, half), Mul(half, x), x / 2.0}) {
    const auto scaled = MatchScaled(tape.program(), y.id);
    ASSERT_TRUE(scaled.has_value());
    EXPECT_EQ(scaled->factor, 0.5);
    EXPECT_EQ(scaled->x, x.id);
  }
  for (const Var y : {x * x, 2.0 / x, x + half, x}) EXPECT_FALSE(MatchScaled(tape.program(), y.id).has_value());
}

TEST(MatchersTest, SumsWithNumbers) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {2, 2}});
  for (const Var y : {x + 3.0, 3.0 + x}) {
    const auto shifted = MatchShifted(tape.program(), y.id);
    ASSERT_TRUE(shifted.has_value());
    EXPECT_EQ(shifted->number, 3);
    EXPECT_EQ(shifted->x, x.id);
  }
  EXPECT_FALSE(MatchShifted(tape.program(), (x + x).id).has_value());
}

TEST(MatchersTest, APatternCollectsWhatItPasses) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {6}});
  const Var scaled = Scale(x, 2), reshaped = Reshape(scaled, {2, 3}), divided = reshaped / 8.0;
  Rewrite rewrite = {.program = tape.program()};
  const PatternRewriter rewriter(rewrite);
  Pattern pattern(rewriter);
  const Scaled all = pattern.BeforeScales(divided.id);
  EXPECT_EQ(all.factor, 0.25);
  EXPECT_EQ(all.x, x.id);
  EXPECT_THAT(pattern.inside(), ElementsAre(divided.id, reshaped.id, scaled.id));
}

}  // namespace
}  // namespace weft
