// An InstructionSetTest runs the tests of a kernel with the best vector instruction set of this CPU, and with
// AVX-512 without its later extensions, AVX2, SSE4 and scalar code. Instruction sets that the build or the CPU lacks
// are skipped.
//
//   using DropTest = InstructionSetTest;
//   TEST_P(DropTest, KeepsElements) { ... }
//   INSTANTIATE_TEST_SUITE_P(InstructionSets, DropTest, InstructionSets(), InstructionSetName);
#ifndef WEFT_OPS_KERNELS_INSTRUCTION_SET_TEST_H_
#define WEFT_OPS_KERNELS_INSTRUCTION_SET_TEST_H_

#include <cstdint>
#include <string>

#include "gtest/gtest.h"
#include "hwy/targets.h"

namespace weft {

class InstructionSetTest : public ::testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override {
    if (GetParam() == 0) return;
    if ((HWY_TARGETS & GetParam()) == 0) GTEST_SKIP() << "not in this build";
    if ((hwy::SupportedTargets() & GetParam()) == 0) GTEST_SKIP() << "not on this CPU";
    hwy::SetSupportedTargetsForTest(GetParam());
    hwy::GetChosenTarget().DeInit();
  }
  void TearDown() override {
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().DeInit();
  }
};

inline auto InstructionSets() { return ::testing::Values(0, HWY_AVX3, HWY_AVX2, HWY_SSE4, HWY_SCALAR); }

inline std::string InstructionSetName(const ::testing::TestParamInfo<int64_t>& info) {
  return info.param == 0 ? "Best" : hwy::TargetName(info.param);
}

}  // namespace weft

#endif  // WEFT_OPS_KERNELS_INSTRUCTION_SET_TEST_H_
