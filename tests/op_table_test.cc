// Checks every op of the library on its own examples (see op_check.h).
#include <set>
#include <string>

#include "gtest/gtest.h"
#include "weft/ops/all_ops.h"
#include "weft/tests/op_check.h"

namespace weft {
namespace {

class OpTableTest : public ::testing::TestWithParam<const OpDef*> {};

TEST_P(OpTableTest, FollowsItsExamples) {
  const OpDef& op = *GetParam();
  const OpCheckResult result = CheckOp(op);
  if (op.no_gradient != nullptr || op.writes > 0) return;
  EXPECT_GT(result.gradients, 0) << "no example's gradient was compared with differences";
  EXPECT_GT(result.second_gradients, 0) << "no example's second gradient was compared: " << result.second_missing;
  EXPECT_EQ(result.second_missing, "");
}

INSTANTIATE_TEST_SUITE_P(AllOps, OpTableTest, ::testing::ValuesIn(AllOps().begin(), AllOps().end()),
                         [](const auto& info) { return std::string(info.param->name); });

TEST(AllOpsTest, NamesAreUnique) {
  std::set<std::string> names;
  for (const OpDef* op : AllOps()) EXPECT_TRUE(names.insert(op->name).second) << op->name;
}

}  // namespace
}  // namespace weft
