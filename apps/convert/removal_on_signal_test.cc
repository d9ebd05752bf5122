#include "weft/apps/convert/removal_on_signal.h"

#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string>

#include "gtest/gtest.h"

namespace weft {
namespace {

TEST(RemovalOnSignalTest, ASignalRemovesTheTemporaryFolder) {
  const std::string folder = ::testing::TempDir() + "/out/1.tmp";
  for (const int signal : {SIGINT, SIGTERM}) {
    std::filesystem::create_directories(folder + "/sub");
    const auto wait = [&] {
      const RemovalOnSignal removal(folder);
      kill(getpid(), signal);
      sleep(60);
    };
    EXPECT_EXIT(wait(), ::testing::KilledBySignal(signal), "");
    EXPECT_FALSE(std::filesystem::exists(folder));
  }
  std::filesystem::create_directories(folder);
  { const RemovalOnSignal removal(folder); }
  EXPECT_TRUE(std::filesystem::exists(folder));
}

TEST(RemovalOnSignalTest, AHeldSignalWaitsForTheEnd) {
  const std::string folder = ::testing::TempDir() + "/held", marker = folder + "/moved";
  std::filesystem::create_directories(folder);
  const auto hold = [&] {
    RemovalOnSignal removal(folder);
    removal.Hold();
    kill(getpid(), SIGINT);
    std::filesystem::create_directory(marker);
  };
  EXPECT_EXIT(hold(), ::testing::KilledBySignal(SIGINT), "");
  EXPECT_TRUE(std::filesystem::exists(marker));
  const auto late = [&] {
    RemovalOnSignal removal(folder);
    kill(getpid(), SIGINT);
    removal.Hold();
  };
  for (int i = 0; i < 20; ++i) EXPECT_EXIT(late(), ::testing::KilledBySignal(SIGINT), "");
}

}  // namespace
}  // namespace weft
