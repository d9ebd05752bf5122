#include "weft/models/layers.h"

#include <cmath>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

TEST(LayersTest, NormsOfBf16HaveGainsInF32) {
  Tape tape;
  const Var x = Cast(tape.Input("x", {kF32, {2, 4}}), kBF16);
  const Var y = LayerNorm("layer", x), z = Norm("rms", x, {.kind = NormKind::kRmsNorm});
  EXPECT_TRUE(tape.status().ok()) << tape.status();
  EXPECT_EQ(y.dtype(), kBF16);
  EXPECT_EQ(z.dtype(), kBF16);
  for (const Var weight : tape.Weights()) EXPECT_EQ(weight.dtype(), kF32);
}

TEST(LayersTest, SaysWhatIsNoTable) {
  const auto error = [](DType dtype, int64_t rows, int64_t cols) {
    Tape tape;
    ConstantTable(&tape, dtype, rows, cols, [](int64_t, int64_t) { return 1.0; });
    return std::string(tape.status().message());
  };
  EXPECT_EQ(error(kF64, 3, 0), "");
  EXPECT_THAT(error(kF32, -1, 4), HasSubstr("constant table: wanted f32 or f64, of a shape; inputs f32[-1,4]"));
  EXPECT_THAT(error(kF32, -2, -2), HasSubstr("inputs f32[-2,-2]"));
  EXPECT_THAT(error(kI32, 2, 2), HasSubstr("inputs i32[2,2]"));
}

TEST(LayersTest, BatchNormOfNoRowsKeepsItsStatistics) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {0, 2}});
  VarList updates;
  const Var y = BatchNorm("norm", x, {}, &updates);
  EXPECT_TRUE(updates.empty());
  EXPECT_EQ(y.shape(), Shape({0, 2}));
  BatchNorm("other", x, {.momentum = std::nan("")}, &updates);
  EXPECT_THAT(std::string(tape.status().message()), HasSubstr("batch_norm: momentum = nan, wanted in [0, 1]"));
}

}  // namespace
}  // namespace weft
