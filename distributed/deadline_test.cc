#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "weft/distributed/rank_watch.h"

namespace weft {
namespace {

void Sleep(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

TEST(DeadlineTest, EndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const Deadline deadline(0.05, "too late");
        Sleep(60);
      },
      testing::ExitedWithCode(1), "^too late\n$");
}

TEST(DeadlineTest, HasNoEffectIfDestroyedInTime) {
  { const Deadline deadline(0.2, "too late"); }
  const Deadline none(0, "too late"), beyond_the_clock(1e10, "too late"), far_beyond(1e300, "too late");
  Sleep(0.4);
}

}  // namespace
}  // namespace weft
