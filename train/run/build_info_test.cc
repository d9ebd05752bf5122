#include "weft/train/run/build_info.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace weft {
namespace {

TEST(BuildInfoTest, TellsIfTheEnvironmentRestrictsKernels) {
  for (const char* name : {"ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"}) {
    unsetenv(name);
    const std::string all = CpuFeatures();
    setenv(name, "ALL", 1);
    EXPECT_EQ(CpuFeatures(), all);
    setenv(name, "SSE41", 1);
    EXPECT_EQ(CpuFeatures(), all + ", restricted by " + name + "=SSE41");
    unsetenv(name);
  }
}

}  // namespace
}  // namespace weft
