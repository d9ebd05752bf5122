#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "weft/base/arena.h"

namespace weft {
namespace {

// Returns what the kernel reports as VmRSS, in bytes.
int64_t ReportedByKernel() {
  std::ifstream status("/proc/self/status");
  std::string word;
  int64_t kilobytes = 0;
  while (status >> word) {
    if (word == "VmRSS:") status >> kilobytes;
  }
  return kilobytes * 1024;
}

TEST(ResidentBytesTest, AgreesWithTheKernelAndGrowsWithTouchedMemory) {
  constexpr int64_t kTolerance = 2 << 20;  // bytes: the kernel counts pages of each thread in batches
  const int64_t before = ResidentBytes();
  EXPECT_NEAR(static_cast<double>(before), static_cast<double>(ReportedByKernel()), kTolerance);
  const std::vector<char> touched(64 << 20, 1);
  EXPECT_NEAR(static_cast<double>(ResidentBytes() - before), static_cast<double>(touched.size()), kTolerance);
}

}  // namespace
}  // namespace weft
