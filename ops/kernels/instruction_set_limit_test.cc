// Its BUILD target runs this test under WEFT_INSTRUCTION_SET=avx2. Bazel's --test_env may set another limit.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "hwy/targets.h"
#include "weft/ops/kernels/instruction_set.h"

namespace weft {
namespace {

TEST(InstructionSetLimitTest, LimitsHighwayAndProducts) {
  const InstructionSet limit = InstructionSetLimit();
  EXPECT_STREQ(NameOf(limit), std::getenv(kInstructionSetVariable));
  EXPECT_NE(hwy::SupportedTargets() & HWY_SSE4, 0);
  if (limit > InstructionSet::kAvx2) return;
  EXPECT_EQ(hwy::SupportedTargets() & (HWY_AVX2 - 1), 0);
  EXPECT_FALSE(HasBF16Products());
  EXPECT_FALSE(HasAmx());
}

TEST(InstructionSetLimitTest, RefusesUnknownNames) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // the child process starts anew, so it reads its environment
  EXPECT_EXIT(
      {
        setenv(kInstructionSetVariable, "avx3", 1);
        execl("/proc/self/exe", "test", nullptr);
      },
      testing::ExitedWithCode(2), "WEFT_INSTRUCTION_SET is 'avx3'. It must be one of: sse4 avx2 .* all");
}

}  // namespace
}  // namespace weft
