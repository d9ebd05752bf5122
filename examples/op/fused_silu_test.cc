#include "fused_silu.h"

#include "gtest/gtest.h"
#include "weft/tests/op_check.h"

TEST(FusedSiluTest, FollowsItsExamples) {
  const weft::OpCheckResult result = weft::CheckOp(my_op::kFusedSilu);
  EXPECT_GT(result.second_gradients, 0) << result.second_missing;
}
