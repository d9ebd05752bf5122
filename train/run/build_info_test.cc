// Its BUILD target runs this test under WEFT_INSTRUCTION_SET=avx2.
#include "weft/train/run/build_info.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft {
namespace {

TEST(BuildInfoTest, TellsIfTheEnvironmentRestrictsKernels) {
  EXPECT_THAT(CpuFeatures(), testing::EndsWith(", restricted by WEFT_INSTRUCTION_SET=avx2"));
}

}  // namespace
}  // namespace weft
