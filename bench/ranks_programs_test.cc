// Runs the benchmarks of several ranks as a user does.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/tests/subprocess.h"

namespace weft {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr char kSmall[] = " --model=charcpu --layers=1 --batch=2 --length=8 --steps=3";

CommandResult RunBench(const std::string& command) {
  std::istringstream words(command);
  return RunCommand({std::istream_iterator<std::string>(words), {}});
}

bool HasOpenMpi() { return RunBench("mpirun.openmpi --version").exit_code == 0; }

std::string Mpirun(int ranks) {
  // Open MPI puts sockets into TMPDIR, and the path of a socket has at most 107 bytes.
  return "env TMPDIR=/tmp mpirun.openmpi --bind-to none --oversubscribe" +
         std::string(getuid() == 0 ? " --allow-run-as-root" : "") + " -np " + std::to_string(ranks) + " ";
}

nlohmann::json Row(const std::string& command) {
  const CommandResult result = RunBench(command + " --json");
  EXPECT_EQ(result.exit_code, 0) << command << "\n" << result.err;
  return result.exit_code == 0 ? nlohmann::json::parse(result.out) : nlohmann::json();
}

TEST(RanksBenchTest, SameWeightsOnAnyNumberOfRanks) {
  const std::string command = std::string("bench/ranks_bench --micro-batches=5") + kSmall;
  const nlohmann::json alone = Row(command);
  EXPECT_EQ(alone.at("ranks"), 1);
  EXPECT_EQ(alone.at("message_ms"), 0);
  EXPECT_EQ(alone.at("sent_mb"), 0);
  for (const char* ranks : {"2", "3", "5"}) {
    const nlohmann::json row = Row(command + " --network=25us,10Gbit --bucket-bytes=10000 --ranks=" + ranks);
    EXPECT_EQ(row.at("ranks"), std::stoi(ranks));
    EXPECT_EQ(row.at("checksum"), alone.at("checksum"));
    EXPECT_EQ(row.at("loss"), alone.at("loss"));
    for (const char* key : {"median_ms", "best_ms", "first_step_ms", "message_ms", "sent_mb", "peak_rss_mb"}) {
      EXPECT_GT(row.at(key), 0) << key;
    }
    EXPECT_LE(row.at("hidden_ms"), row.at("message_ms"));
    EXPECT_GE(row.at("hidden_fraction"), 0);
    EXPECT_LE(row.at("hidden_fraction"), 1);
  }
  EXPECT_NE(Row("bench/ranks_bench --micro-batches=4" + std::string(kSmall)).at("checksum"), alone.at("checksum"));
}

TEST(RanksBenchTest, ASlowNetworkTakesItsTime) {
  const std::string command = "bench/ranks_bench --ranks=2" + std::string(kSmall);
  const nlohmann::json row = Row(command + " --network=1ms,100Mbit");
  EXPECT_GE(row.at("message_ms").get<double>(), row.at("sent_mb").get<double>() * 80);  // 12.5 MB/s
}

TEST(RanksBenchTest, MpirunGivesTheWeightsOfOneRankAndOfThePlainStep) {
  if (!HasOpenMpi()) GTEST_SKIP() << "mpirun.openmpi is not installed; tools/setup installs it";
  const nlohmann::json alone = Row("bench/ranks_bench" + std::string(kSmall));
  for (const char* program : {"bench/ranks_bench", "bench/mpi_allreduce_bench"}) {
    const nlohmann::json row = Row(Mpirun(2) + program + kSmall);
    EXPECT_EQ(row.at("ranks"), 2);
    EXPECT_EQ(row.at("checksum"), alone.at("checksum")) << program;
    EXPECT_NEAR(row.at("loss"), alone.at("loss"), 1e-9);
    EXPECT_GT(row.at("message_ms"), 0);
    EXPECT_NEAR(row.at("sent_mb"), 0.86, 0.01);  // 4 bytes for each weight
  }
  const nlohmann::json whole = Row(Mpirun(2) + "bench/ranks_bench" + kSmall);
  const nlohmann::json shards = Row(Mpirun(2) + "bench/ranks_bench --shard=gradients" + kSmall);
  const nlohmann::json weights = Row(Mpirun(2) + "bench/ranks_bench --shard=weights" + kSmall);
  EXPECT_EQ(shards.at("checksum"), alone.at("checksum"));
  EXPECT_EQ(weights.at("checksum"), alone.at("checksum"));
  for (const size_t rank : {size_t{0}, size_t{1}}) {
    EXPECT_LT(shards.at("planned_mb")[rank], whole.at("planned_mb")[rank]);
    EXPECT_GT(shards.at("private_mb")[rank], 0);
  }
  const CommandResult threads = RunBench(Mpirun(2) + "bench/ranks_bench --ranks=2" + kSmall);
  EXPECT_NE(threads.exit_code, 0);
  EXPECT_THAT(threads.err, HasSubstr("--ranks: this program is one of several ranks already"));
  const CommandResult odd = RunBench(Mpirun(2) + "bench/mpi_allreduce_bench --micro-batches=3" + kSmall);
  EXPECT_NE(odd.exit_code, 0);
  EXPECT_THAT(odd.err, HasSubstr("--micro-batches: 3 is not a multiple of 2 ranks"));
}

TEST(RanksBenchTest, UsageErrors) {
  for (const std::string flags :
       {"--foo", "gpt2", "--model=minilm-forward", "--batch=-1", "--steps=2", "--ranks=0", "--micro-batches=0",
        "--network=25us,10Gbit", "--ranks=2 --network=25us", "--ranks=2 --network=25,10Gbit",
        "--ranks=2 --network=25us,10Gib", "--ranks=2 --network=25us,0Gbit", "--ranks=2 --network=us,1Gbit",
        "--ranks=3 --micro-batches=2 --model=charcpu"}) {
    const CommandResult result = RunBench("bench/ranks_bench " + flags);
    EXPECT_EQ(result.exit_code, 2) << flags << "\n" << result.err;
    EXPECT_EQ(result.out, "") << flags;
    EXPECT_THAT(result.err, StartsWith("ranks_bench: ")) << flags;
  }
  EXPECT_THAT(RunBench("bench/ranks_bench --ranks=2 --network=25,10Gbit").err, HasSubstr("is not LATENCY,BANDWIDTH"));
  for (const char* program : {"ranks_bench", "mpi_allreduce_bench"}) {
    EXPECT_THAT(RunBench("bench/" + std::string(program) + " --help").out, HasSubstr("--micro-batches"));
  }
}

// A program that prints a row with a given time.
std::string FakeProgram(const std::string& name, int median_ms) {
  const std::string path = testing::TempDir() + "/" + name, ms = std::to_string(median_ms);
  std::ofstream(path) << "#!/bin/sh\necho a warning\necho '{\"median_ms\": " << ms << ", \"best_ms\": " << ms
                      << ", \"peak_rss_mb\": 100, \"hidden_fraction\": 0.5, \"message_ms\": 7, \"sent_mb\": 3}'\n";
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  return path;
}

TEST(CompareRanksTest, PrintsATableOfRatios) {
  const std::string launcher = testing::TempDir() + "/fake_mpirun", json = testing::TempDir() + "/ranks.json";
  // Runs the program that follows its own flags.
  std::ofstream(launcher)
      << "#!/bin/sh\nfor word; do case $word in */fake_weft|*/fake_plain) exec $word;; esac; done\n";
  std::filesystem::permissions(launcher, std::filesystem::perms::owner_all);
  const CommandResult result = RunBench("bench/compare_ranks --rounds=2 --probe= --mpirun=" + launcher +
                                        " --ranks-bench=" + FakeProgram("fake_weft", 100) +
                                        " --mpi-allreduce-bench=" + FakeProgram("fake_plain", 150) +
                                        " --python=" + FakeProgram("fake_python", 400) + " --json=" + json);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, StartsWith("| program | step ms | best ms | ratio | messages ms | hidden | sent MB | peak"));
  for (const char* row : {"\n| weft | 100.0 | 100.0 | 1.00 | 7.0 | 0.50 | 3.0 | 100 |\n", "\n| plain | 150.0 | ",
                          "\n| ddp | 400.0 | 400.0 | 4.00 | ", "\n| imitated | 100.0 | "}) {
    EXPECT_THAT(result.out, HasSubstr(row));
  }
  std::ifstream file(json);
  const nlohmann::json rows = nlohmann::json::parse(file);
  ASSERT_EQ(rows.size(), 4);
  EXPECT_EQ(rows.at(1).at("program"), "plain");
  EXPECT_EQ(rows.at(1).at("ratio"), 1.5);
  EXPECT_EQ(rows.at(1).at("runs").size(), 2);
}

TEST(CompareRanksTest, UsageErrorsAndProgramsThatFail) {
  for (const char* flags : {"--foo", "--programs=plain", "--programs=weft,fast", "--rounds=0", "--steps=2", "--ranks=1",
                            "--json=/nowhere/file"}) {
    const CommandResult result = RunBench(std::string("bench/compare_ranks ") + flags);
    EXPECT_EQ(result.exit_code, 2) << flags << "\n" << result.err;
    EXPECT_THAT(result.err, StartsWith("usage: compare_ranks ")) << flags;
  }
  const CommandResult result = RunBench("bench/compare_ranks --probe= --programs=weft --mpirun=/bin/false");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, StartsWith("compare_ranks: /bin/false -np 2 --bind-to none --oversubscribe "));
}

}  // namespace
}  // namespace weft
