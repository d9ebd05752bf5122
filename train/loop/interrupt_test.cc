#include "weft/train/loop/interrupt.h"

#include <gtest/gtest.h>

#include <csignal>

namespace weft {
namespace {

class InterruptTest : public testing::TestWithParam<int> {
 protected:
  ~InterruptTest() override { std::signal(GetParam(), SIG_DFL); }
};

INSTANTIATE_TEST_SUITE_P(Signals, InterruptTest, testing::Values(SIGINT, SIGTERM, SIGHUP, SIGUSR1));

TEST_P(InterruptTest, TheFirstSignalIsARequest) {
  const Interrupt interrupt;
  EXPECT_FALSE(interrupt.requested());
  std::raise(GetParam());
  EXPECT_TRUE(interrupt.requested());
}

TEST_P(InterruptTest, AnIgnoredSignalStaysIgnored) {
  std::signal(GetParam(), SIG_IGN);  // as nohup does with SIGHUP
  for (int i = 0; i < 2; ++i) {
    const Interrupt interrupt;
    std::raise(GetParam());
    EXPECT_FALSE(interrupt.requested());
  }
}

TEST_P(InterruptTest, TheOldActionComesBack) {
  { const Interrupt interrupt; }
  EXPECT_EQ(std::signal(GetParam(), SIG_DFL), SIG_DFL);
}

}  // namespace
}  // namespace weft
