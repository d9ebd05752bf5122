// Runs the commands that predict steps, measure networks and print graphs of several ranks.
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/tests/weft_program.h"

namespace weft {
namespace {

using testing::HasSubstr;

class RanksTest : public WeftProgramTest {};

TEST_F(RanksTest, SimulatePredictsEachNumberOfRanks) {
  const CommandResult result = Weft({"simulate", "charcpu", "--ranks=8,1,2", "--workers=1", "--runs=1",
                                     "--network=50us,1Gbit,tree:4:2", "--shard=optimizer", "--json"});
  ASSERT_TRUE(Works(result));
  std::vector<nlohmann::json> rows;
  for (absl::string_view line : absl::StrSplit(result.out, '\n', absl::SkipEmpty())) {
    rows.push_back(nlohmann::json::parse(std::string(line)));
  }
  ASSERT_EQ(rows.size(), 3u);
  for (size_t i = 0; i < rows.size(); ++i) {
    const int ranks = std::vector<int>{1, 2, 8}[i];
    EXPECT_EQ(rows[i].at("ranks"), ranks);
    EXPECT_EQ(rows[i].at("micro_batches"), ranks);
    EXPECT_EQ(rows[i].at("network"), "50us,1Gbit,tree:4:2");
    EXPECT_GT(rows[i].at("step_ms"), 0);
    EXPECT_LE(rows[i].at("hidden_ms"), rows[i].at("communication_ms"));
    EXPECT_EQ(rows[i].at("communication_ms") > 0, ranks > 1);
    for (const char* shard : {"none", "optimizer", "gradients", "weights"}) {
      EXPECT_GT(rows[i].at("memory_bytes").at(shard), 3e6) << shard;  // 0.8 million weights in f32
    }
  }
}

TEST_F(RanksTest, SimulateComparesWithRanksOfThisProcess) {
  const CommandResult result = Weft({"simulate", "charcpu", "--ranks=1", "--micro-batches=2", "--workers=1", "--runs=1",
                                     "--network=1ms,1Gbit", "--validate", "--json"});
  ASSERT_TRUE(Works(result));
  const nlohmann::json row = nlohmann::json::parse(result.out);
  EXPECT_EQ(row.at("micro_batches"), 2);
  EXPECT_GT(row.at("measured_ms"), 0);
}

TEST_F(RanksTest, SimulateNamesFlagsThatDoNotFit) {
  const Arguments simulate = {"simulate", "charcpu"};
  for (const auto& [flags, error] : std::vector<std::pair<Arguments, std::string>>{
           {{"--network=1ms,1Gbit"}, "--network is for predictions with --ranks"},
           {{"--ranks=0"}, "--ranks: '0' is not a whole number from 1 to 4096"},
           {{"--ranks=2", "--network=fast"}, "--network: 'fast' is not LATENCY,BANDWIDTH"},
           {{"--ranks=2", "--workers=1,2"}, "with --ranks, one number of workers"},
           {{"--ranks=2", "--policy=fifo"}, "--policy is not for predictions with --ranks"},
           {{"--ranks=4", "--micro-batches=3"}, "4 ranks need at least one each"},
           {{"--ranks=2", "--workers=2", "--validate"}, "--validate runs each rank on one thread"},
           {{"--ranks=2", "--workers=1", "--validate", "--network=1ms,1Gbit,tree:2:2"}, "imitates a flat network"}}) {
    const CommandResult result = Weft(simulate + flags);
    EXPECT_EQ(result.exit_code, 2) << error;
    EXPECT_THAT(result.err, HasSubstr(error));
  }
}

TEST_F(RanksTest, ProfileWritesLanesOfMessages) {
  const Arguments profile = {"profile", "charcpu", "--runs=1", "--out=" + Path("trace.json")};
  const CommandResult result = Weft(profile + Arguments{"--ranks=2", "--network=1ms,1Gbit"});
  ASSERT_TRUE(Works(result));
  EXPECT_THAT(result.out, HasSubstr("on 2 ranks; messages took"));
  const std::string trace = Read("trace.json");
  EXPECT_TRUE(nlohmann::json::accept(trace));
  EXPECT_THAT(trace, HasSubstr("\"sends\""));
  EXPECT_THAT(trace, HasSubstr("\"receives\""));
  for (const auto& [flags, error] : std::vector<std::pair<Arguments, std::string>>{
           {{"--overwrite", "--ranks=2", "--threads=2"}, "--threads is not for a trace of several ranks"},
           {{"--overwrite", "--ranks=2", "--network=fast"}, "--network: 'fast' is not LATENCY,BANDWIDTH"},
           {{"--overwrite", "--network=1ms,1Gbit"}, "--network: it needs --ranks"},
           {{"--ranks=2"}, "is there: --overwrite replaces it"}}) {
    const CommandResult failed = Weft(profile + flags);
    EXPECT_EQ(failed.exit_code, 2) << error;
    EXPECT_THAT(failed.err, HasSubstr(error));
  }
  EXPECT_EQ(Read("trace.json"), trace);
}

TEST_F(RanksTest, CalibrateAddsTheNetworkToAFile) {
  const Arguments calibrate = {"calibrate", "--network", "--imitate=2ms,1Gbit", "--out=" + Path("network.json")};
  for (int run = 0; run < 2; ++run) {
    const CommandResult result = Weft(calibrate);
    ASSERT_TRUE(Works(result));
    EXPECT_THAT(result.out, HasSubstr("--network="));
  }
  EXPECT_THAT(nlohmann::json::parse(Read("network.json")).at("network").get<std::string>(), HasSubstr("ms,"));
  const CommandResult alone = Weft({"calibrate", "--network", "--out=" + Path("more.json")});
  EXPECT_EQ(alone.exit_code, 2);
  EXPECT_THAT(alone.err, HasSubstr("measures between 2 ranks, but there are 1"));
  EXPECT_FALSE(Exists("more.json"));
}

TEST_F(RanksTest, GraphPrintsTheMessagesOfARank) {
  const CommandResult result = Weft({"graph", "charcpu", "--ranks=4", "--rank=1"});
  ASSERT_TRUE(Works(result));
  EXPECT_THAT(result.out, HasSubstr("= send("));
  EXPECT_THAT(result.out, HasSubstr("peer=3 tag="));
  const CommandResult gpt = Weft({"graph", "--ranks=4"});
  EXPECT_EQ(gpt.exit_code, 2);
  EXPECT_THAT(gpt.err, HasSubstr("--ranks is for the compiled graph of a run or of a model"));
  const CommandResult beyond = Weft({"graph", "charcpu", "--ranks=4", "--rank=4"});
  EXPECT_EQ(beyond.exit_code, 2);
  EXPECT_THAT(beyond.err, HasSubstr("rank 4 is not one of 4 ranks, 0 to 3"));
  MakeRun("run");
  const CommandResult run = Weft({"graph", Path("run"), "--ranks=2"});
  ASSERT_TRUE(Works(run));
  EXPECT_THAT(run.out, HasSubstr("= send("));
}

}  // namespace
}  // namespace weft
