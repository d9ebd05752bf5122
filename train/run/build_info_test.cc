// BUILD has two targets of this test: without a limit, and under WEFT_INSTRUCTION_SET=avx2.
#include "weft/train/run/build_info.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "weft/ops/kernels/instruction_set.h"

namespace weft {
namespace {

TEST(BuildInfoTest, TellsIfTheEnvironmentRestrictsKernels) {
  const char* const limit = std::getenv(kInstructionSetVariable);
  if (limit == nullptr) {
    EXPECT_THAT(CpuFeatures(), testing::Not(testing::HasSubstr("restricted")));
  } else {
    EXPECT_THAT(CpuFeatures(), testing::EndsWith(std::string(", restricted by WEFT_INSTRUCTION_SET=") + limit));
  }
}

}  // namespace
}  // namespace weft
