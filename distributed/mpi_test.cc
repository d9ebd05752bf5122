// Starts mpirun of Open MPI and of MPICH, as root and as an ordinary user, with 1 to 5 ranks on this machine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "weft/tests/ranks/mpi_rank.h"
#include "weft/tests/short_folder.h"
#include "weft/tests/subprocess.h"

namespace weft {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

using Command = std::vector<std::string>;

constexpr char kProgram[] = "mpi_test", kOpenMpi[] = "mpirun.openmpi", kMpich[] = "mpirun.mpich";

Command operator+(Command a, const Command& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Sets the sanitizers' options so that they don't report MPI's own libraries.
const Command kEnvironment = {
    "env", "ASAN_OPTIONS=detect_leaks=0", "TSAN_OPTIONS=detect_deadlocks=0:ignore_noninstrumented_modules=1",
#ifdef __SANITIZE_THREAD__
    "UCX_MEM_EVENTS=no",  // UCX of MPICH replaces functions that ThreadSanitizer also replaces
#endif
};

// The beginning of a command that an ordinary user runs.
Command AsUser() { return {"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"}; }

bool IsInstalled(const std::string& program) {
  return RunCommand({"sh", "-c", "command -v " + program}).exit_code == 0;
}

// A folder that every user may read, with a copy of this program and of the plugins.
class Folder {
 public:
  Folder() : folder_("mpi") {
    chmod(folder_.path().c_str(), 0755);
    fs::create_directory(Path("tmp"));
    chmod(Path("tmp").c_str(), 01777);
    fs::copy_file("/proc/self/exe", Path(kProgram));
    for (const std::string name : {"libweft_mpi.so", "libweft_mpich.so"}) {
      fs::copy_file("distributed/mpi/" + name, Path(name));
    }
  }

  std::string Path(const std::string& name) const { return folder_.path() + "/" + name; }

 private:
  ShortFolder folder_;
};

// The launcher, and whether it runs as an ordinary user.
class MpiTest : public testing::TestWithParam<std::tuple<std::string, bool>> {
 protected:
  void SetUp() override {
    if (!IsInstalled(launcher())) GTEST_SKIP() << launcher() << " is not installed; tools/setup installs it";
    if (as_user() && getuid() != 0) GTEST_SKIP() << "the other tests run as an ordinary user already";
    if (as_user() && RunCommand(AsUser() + Command{"true"}).exit_code != 0) {
      GTEST_SKIP() << "can't start a program as an ordinary user: setpriv fails";
    }
  }

  const std::string& launcher() const { return std::get<0>(GetParam()); }
  bool as_user() const { return std::get<1>(GetParam()); }

  // Runs `program`, one of those of mpi_rank.h, on `ranks` ranks.
  CommandResult Run(int ranks, const std::string& program) const {
    Command command = Command{"timeout", "60"} + kEnvironment +
                      Command{"HOME=" + folder_.Path("tmp"), "TMPDIR=" + folder_.Path("tmp")};
    if (as_user()) command = command + AsUser();
    command.push_back(launcher());
    if (launcher() == kOpenMpi) {
      command = command + Command{"--oversubscribe", "--bind-to", "none"};
      if (getuid() == 0 && !as_user()) command.push_back("--allow-run-as-root");
    }
    return RunCommand(command + Command{"-np", absl::StrCat(ranks), folder_.Path(kProgram), program},
                      {.folder = folder_.Path("tmp")});
  }

  // Waits up to 10 s until no rank runs. mpirun of MPICH may end before the ranks that it has killed.
  bool AllRanksEnd() const {
    const absl::Time deadline = absl::Now() + absl::Seconds(10);
    while (RunCommand({"pgrep", "-f", folder_.Path(kProgram)}).exit_code == 0) {
      if (absl::Now() > deadline) return false;
      absl::SleepFor(absl::Milliseconds(20));
    }
    return true;
  }

  const Folder folder_;
};

TEST_P(MpiTest, RanksExchangeMessages) {
  EXPECT_EQ(Run(1, "exchange").out, "one rank has no communicator\n");
  for (const int ranks : {2, 3, 5}) {
    const CommandResult result = Run(ranks, "exchange");
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.out, absl::StrCat(ranks, " ranks exchanged messages\n"));
    EXPECT_EQ(result.err, "");
  }
}

TEST_P(MpiTest, LongMessages) {
  const CommandResult result = Run(2, "long");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "2 ranks exchanged messages\n");
}

TEST_P(MpiTest, AbortEndsAllRanks) {
  const CommandResult result = Run(3, "abort");
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_EQ(result.out, "");
}

TEST_P(MpiTest, AKilledRankEndsAllRanks) {
  const CommandResult result = Run(3, "kill");
  // Open MPI sometimes does not print which rank was killed, and MPICH never does. See tools/launch.
  EXPECT_EQ(result.exit_code, launcher() == kOpenMpi ? 128 + 9 : 9) << result.err;
  EXPECT_TRUE(AllRanksEnd()) << "a rank still runs 10 s after mpirun has ended";
}

TEST_P(MpiTest, AStoppedRankIsNamedAndEndsAllRanks) {
  const CommandResult result = Run(3, "stop");
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_EQ(result.out.find("rank 0 ends"), std::string::npos);
  EXPECT_THAT(result.err, HasSubstr("weft: rank 1 has not answered for 1 s; ending all ranks\n"));
  EXPECT_TRUE(AllRanksEnd()) << "a rank still runs 10 s after mpirun has ended";
}

TEST_P(MpiTest, ARankThatStopsBeforeItConnectsEndsAllRanks) {
  const CommandResult result = Run(3, "hang");
  // mpirun of MPICH kills the rank that hangs, and then returns either its signal or the exit code of the others.
  if (launcher() == kOpenMpi || result.exit_code != 9) {
    EXPECT_EQ(result.exit_code, 1) << result.err;
  }
  EXPECT_EQ(result.out.find("rank 0 ends"), std::string::npos);  // mpirun of MPICH may print that ranks were killed
  EXPECT_THAT(result.err, HasSubstr("weft: a rank has not answered for 1 s while MPI started; ending all ranks\n"));
  EXPECT_TRUE(AllRanksEnd()) << "a rank still runs 10 s after mpirun has ended";
}

TEST_P(MpiTest, RanksMayEndLate) {
  const CommandResult result = Run(3, "late");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "rank 0 ends\n");
  EXPECT_EQ(result.err, "");
}

// The name of a test, such as OpenMpiAsRoot.
std::string Name(const testing::TestParamInfo<MpiTest::ParamType>& info) {
  const auto& [launcher, as_user] = info.param;
  return absl::StrCat(launcher == kOpenMpi ? "OpenMpi" : "Mpich", as_user ? "AsUser" : "");
}
INSTANTIATE_TEST_SUITE_P(, MpiTest, testing::Combine(testing::Values(kOpenMpi, kMpich), testing::Bool()), Name);

TEST(MpiLaunch, RanksOfSlurmConnectThroughPmix) {
  if (!IsInstalled(kOpenMpi)) GTEST_SKIP() << kOpenMpi << " is not installed; tools/setup installs it";
  const Folder folder;
  // mpirun gives its ranks PMIX_RANK, as srun --mpi=pmix does.
  const std::string rank =
      "unset OMPI_COMM_WORLD_SIZE; export SLURM_NTASKS=2 SLURM_PROCID=$PMIX_RANK; exec $0 exchange";
  Command command =
      Command{"timeout", "60"} + kEnvironment +
      Command{"TMPDIR=" + folder.Path("tmp"), kOpenMpi, "-np", "2", "--oversubscribe", "--bind-to", "none"};
  if (getuid() == 0) command.push_back("--allow-run-as-root");
  const CommandResult result = RunCommand(command + Command{"sh", "-c", rank, folder.Path(kProgram)});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "2 ranks exchanged messages\n");
}

TEST(MpiLaunch, ALauncherOfAnotherMpiIsAnError) {
  const Folder folder;
  const CommandResult result =
      RunCommand(kEnvironment + Command{"OMPI_COMM_WORLD_SIZE=3", folder.Path(kProgram), "exchange"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.err, AllOf(HasSubstr("the launcher started 3 ranks"), HasSubstr("knows 1")));
}

TEST(MpiLaunch, AMissingPluginIsAnErrorWithThePathsThatWereSearched) {
  const Folder folder;
  fs::remove(folder.Path("libweft_mpi.so"));
  const CommandResult result =
      RunCommand(kEnvironment + Command{"OMPI_COMM_WORLD_SIZE=3", folder.Path(kProgram), "exchange"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("there is no libweft_mpi.so"), HasSubstr(folder.Path("libweft_mpi.so")),
                    HasSubstr("bazel build -c opt //distributed/mpi:libweft_mpi.so"), HasSubstr("WEFT_MPI_PLUGIN")));
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  return argc > 1 ? weft::RunRank(argv[1]) : RUN_ALL_TESTS();
}
