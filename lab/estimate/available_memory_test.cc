#include "weft/lab/estimate/available_memory.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "weft/base/file.h"

namespace weft {
namespace {

class AvailableMemoryTest : public testing::Test {
 protected:
  AvailableMemoryTest() { std::filesystem::remove_all(root_); }
  void Write(const std::string& path, const std::string& contents) const {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    ASSERT_TRUE(WriteFile(file.string(), {contents}).ok());
  }
  const std::string root_ = testing::TempDir() + "/available_memory";
};

// The files as Linux writes them.
TEST_F(AvailableMemoryTest, TheLeastLimitCounts) {
  EXPECT_EQ(AvailableMemory(root_), 0u) << "the system does not tell";
  Write("/proc/meminfo", "MemTotal:       24000000 kB\nMemFree:         1000000 kB\nMemAvailable:    2000000 kB\n");
  EXPECT_EQ(AvailableMemory(root_), 2'048'000'000u);
  Write("/proc/self/cgroup", "0::/user.slice/session\n");
  Write("/sys/fs/cgroup/user.slice/memory.max", "1900000000\n");
  EXPECT_EQ(AvailableMemory(root_), 1'900'000'000u) << "the limit of a group around the own one";
  Write("/sys/fs/cgroup/user.slice/memory.max", "max\n");
  Write("/sys/fs/cgroup/user.slice/session/memory.max", "max\n");
  Write("/sys/fs/cgroup/user.slice/session/memory.current", "500000000\n");
  EXPECT_EQ(AvailableMemory(root_), 2'048'000'000u);
  Write("/sys/fs/cgroup/user.slice/session/memory.max", "1500000000\n");
  EXPECT_EQ(AvailableMemory(root_), 1'000'000'000u);
  Write("/sys/fs/cgroup/user.slice/session/memory.stat", "anon 300000000\ninactive_file 200000000\n");
  EXPECT_EQ(AvailableMemory(root_), 1'200'000'000u) << "pages of files can be dropped";
  Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  Write("/sys/fs/cgroup/memory/memory.usage_in_bytes", "1000\n");
  EXPECT_EQ(AvailableMemory(root_), 1'200'000'000u) << "version 1 without a limit";
  Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "1001000\n");
  EXPECT_EQ(AvailableMemory(root_), 1'000'000u);
  Write("/proc/self/cgroup", "4:memory:/job\n0::/\n");
  Write("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "500000\n");
  EXPECT_EQ(AvailableMemory(root_), 500'000u) << "version 1, of a group";
}

}  // namespace
}  // namespace weft
