#include "weft/apps/convert/convert_rows.h"

#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string>

#include "gtest/gtest.h"

namespace weft {
namespace {

TEST(ConvertRowsTest, ASignalRemovesTheTemporaryFolder) {
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

}  // namespace
}  // namespace weft
