#include "weft/base/cores.h"

#include <gtest/gtest.h>

#include <climits>
#include <filesystem>

#include "weft/base/file.h"

namespace weft {
namespace {

class CoresTest : public testing::Test {
 protected:
  CoresTest() { std::filesystem::remove_all(root_); }
  void Write(const std::string& path, const std::string& contents) const {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    ASSERT_TRUE(WriteFile(file.string(), {contents}).ok());
  }
  const std::string root_ = testing::TempDir() + "/cores";
};

TEST_F(CoresTest, IsAtLeastOne) { EXPECT_GE(Cores(), 1); }

// The files as Linux writes them.
TEST_F(CoresTest, TheQuotaOfAnyGroupCounts) {
  EXPECT_EQ(CoresOfQuota(root_), INT_MAX);
  Write("/proc/self/cgroup", "0::/jobs/job_1/step_0\n");
  Write("/sys/fs/cgroup/jobs/job_1/step_0/cpu.max", "max 100000\n");
  EXPECT_EQ(CoresOfQuota(root_), INT_MAX);
  Write("/sys/fs/cgroup/jobs/job_1/cpu.max", "350000 100000\n");
  EXPECT_EQ(CoresOfQuota(root_), 4) << "rounded up, of a group that contains the own one";
  Write("/sys/fs/cgroup/cpu.max", "200000 100000\n");
  EXPECT_EQ(CoresOfQuota(root_), 2) << "as a container sees its own group";
}

TEST_F(CoresTest, TheQuotaOfVersion1Counts) {
  Write("/proc/self/cgroup", "4:memory:/other\n3:cpu,cpuacct:/docker/abc\n");
  Write("/sys/fs/cgroup/cpu/docker/abc/cpu.cfs_quota_us", "-1\n");
  Write("/sys/fs/cgroup/cpu/docker/abc/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(CoresOfQuota(root_), INT_MAX);
  Write("/sys/fs/cgroup/cpu/docker/abc/cpu.cfs_quota_us", "150000\n");
  EXPECT_EQ(CoresOfQuota(root_), 2);
}

}  // namespace
}  // namespace weft
