// Starts `weft` under mpirun, as users do. No number of ranks may change a byte of a run.
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "weft/tests/short_folder.h"
#include "weft/tests/weft_program.h"

namespace weft {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr char kLauncher[] = "mpirun.openmpi";

class RanksTest : public WeftProgramTest {
 protected:
  void SetUp() override {
    if (RunCommand({"which", kLauncher}).exit_code != 0) GTEST_SKIP() << kLauncher << " is missing; run tools/setup";
  }

  // A group of ranks with equal arguments. Ranks of different groups may have different arguments.
  struct Group {
    int ranks = 1;
    Arguments arguments;
  };
  // Runs `weft` in the test's folder on the ranks of all groups.
  CommandResult Launch(const std::vector<Group>& groups, CommandOptions options = {}) const {
    options.folder = folder_;
    Arguments command = {"env", "TMPDIR=" + sockets_.path(), kLauncher,   "-q",  "--timeout",
                         "60",  "--oversubscribe",           "--bind-to", "none"};
    if (getuid() == 0) command.push_back("--allow-run-as-root");
    for (const Group& group : groups) {
      if (&group != &groups.front()) command.push_back(":");
      command = command + Arguments{"-np", std::to_string(group.ranks), weft_} + group.arguments;
    }
    return RunCommand(command, options);
  }

  // Returns the arguments that train a small model of any kind with four micro-batches.
  Arguments Training(const std::string& name) const {
    const Arguments gpt = Arguments{"train", "gpt", "--data=text.txt", "--eval-batches=3", "--sample-length=20"} +
                          kTinyModel + Arguments{"--batch=6"};
    return (name == "gpt" ? gpt : SmallTraining(name)) +
           Arguments{"--micro-batches=4", "--steps=12", "--eval-every=5", "--checkpoint-every=5", "--threads=1"};
  }

 private:
  const std::string weft_ = fs::absolute("apps/weft").string();
  const ShortFolder sockets_ = ShortFolder("ranks");
};

// Expects the exit code, and that exactly one rank prints an error on stderr. Ignores progress and lines of mpirun.
testing::AssertionResult OneRankFails(const CommandResult& result, int exit_code, const std::string& message) {
  static const std::regex line("(^|\n)weft[^\n]*: ");
  const auto count =
      std::distance(std::sregex_iterator(result.err.begin(), result.err.end(), line), std::sregex_iterator());
  if (result.exit_code == exit_code && count == 1 && result.err.find(message) != std::string::npos) {
    return testing::AssertionSuccess();
  }
  return testing::AssertionFailure() << "wanted exit code " << exit_code << " and one '" << message << "'; exit code "
                                     << result.exit_code << ", stderr: " << result.err;
}

TEST_F(RanksTest, NoNumberOfRanksChangesARun) {
  WriteTrainingData();
  for (const std::string name : {"gpt", "translate", "bert", "classify"}) {
    SCOPED_TRACE(name);
    const Arguments flags = Training(name) + Arguments{"--ema=0.9", "--out=" + name};
    EXPECT_TRUE(Works(Weft(flags + Arguments{"--threads=2"})));
    for (const int ranks : {2, 3}) {
      const CommandResult result = Launch({{ranks, flags + Arguments{"--out=several-" + name, "--overwrite"}}});
      EXPECT_EQ(result.exit_code, 0) << result.err;
      EXPECT_THAT(result.err, HasSubstr(" on " + std::to_string(ranks) + " ranks\n"));
      EXPECT_EQ(Differences(Results(name), Results("several-" + name)), "") << ranks << " ranks";
    }
  }
}

// The matrices of the feed-forward layer are large enough to be divided.
TEST_F(RanksTest, DividedWeightsChangeNoRun) {
  WriteTrainingData();
  const Arguments flags = Training("gpt") + Arguments{"--width=128", "--heads=2", "--save-best"};
  EXPECT_TRUE(Works(Weft(flags + Arguments{"--out=whole"})));
  EXPECT_TRUE(Works(Weft(flags + Arguments{"--out=continued", "--init=whole"})));
  for (const std::string ranks : {"3", "4"}) {
    const Arguments divided = flags + Arguments{"--shard=weights"};
    const CommandResult result = Launch({{std::stoi(ranks), divided + Arguments{"--out=divided" + ranks}}});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_TRUE(Exists("divided" + ranks + "/checkpoints/10/state.1.safetensors"));
    for (const std::string file : {"model.safetensors", "best.safetensors", "sample.txt"}) {
      EXPECT_TRUE(Read("divided" + ranks + "/" + file) == Read("whole/" + file)) << file << ", " << ranks << " ranks";
    }
  }
  const CommandResult continued =
      Launch({{2, flags + Arguments{"--shard=weights", "--init=whole", "--out=continued2"}}});
  EXPECT_EQ(continued.exit_code, 0) << continued.err;
  EXPECT_TRUE(Read("continued2/model.safetensors") == Read("continued/model.safetensors"));
  for (const auto& [flag, message] : std::vector<std::pair<std::string, std::string>>{
           {"--lora-rank=2", "--shard: weights does not work with low-rank adapters"},
           {"--tensorboard", "--tensorboard: its histograms need whole weights"},
           {"--ema=0.9", "averages of weights (ema) don't work"}}) {
    EXPECT_TRUE(OneRankFails(Launch({{2, flags + Arguments{"--shard=weights", "--init=whole", "--out=error", flag}}}),
                             2, message));
  }
}

TEST_F(RanksTest, ARunStopsOnThreeRanksAndResumesOnTwo) {
  const Arguments flags =
      Training("gpt") + Arguments{"--steps=3000", "--eval-every=500", "--checkpoint-every=0", "--keep=1"};
  EXPECT_TRUE(Works(Weft(flags + Arguments{"--out=whole"})));
  // mpirun passes this signal on. After SIGINT and SIGTERM it kills the ranks if they take longer than a second.
  const CommandResult stopped = Launch({{3, flags + Arguments{"--out=run", "--log-every=1"}}},
                                       {.signal_after = "step 20/3000  loss", .signal = SIGUSR1});
  EXPECT_THAT(stopped.err, HasSubstr("and saved; continue with --resume --out=run\n"));
  const CommandResult resumed = Launch({{2, {"train", "gpt", "--resume", "--out=run"}}});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(Differences(Results("run"), Results("whole")), "");
}

TEST_F(RanksTest, OneRankWithOtherFlagsIsNamed) {
  const Arguments flags = Training("gpt") + Arguments{"--out=run"};
  EXPECT_TRUE(OneRankFails(Launch({{1, flags}, {1, flags + Arguments{"--dropout=0.5"}}}), 1,
                           "rank 1 has dropout 0.5, but rank 0 has "));
  EXPECT_TRUE(OneRankFails(Launch({{1, flags}, {1, flags + Arguments{"--rank-timeout=50"}}}), 1,
                           "rank 1 has rank_timeout 50.0, but rank 0 has 60.0"));
  Write("other.txt", Read("text.txt") + "one more line\n");
  EXPECT_TRUE(
      OneRankFails(Launch({{2, flags}, {1, flags + Arguments{"--data=other.txt"}}}), 1, "rank 2 has files.data "));
  EXPECT_TRUE(
      OneRankFails(Launch({{1, flags}, {1, flags + Arguments{"--data=missing.txt"}}}), 2, "rank 1: cannot open "));
  EXPECT_FALSE(Exists("run"));
}

TEST_F(RanksTest, AMissingShardIsAnErrorOfTheRankThatNeedsIt) {
  WriteTrainingData();
  EXPECT_TRUE(Works(Weft({"tokenize", "--out=whole", "--vocabulary=300", "--shard-tokens=200", "text.txt"})));
  fs::copy(Path("whole"), Path("part"));
  const Arguments flags = Training("gpt") + Arguments{"--steps=200", "--out=run", "--overwrite"};
  const auto launch = [&] {
    return Launch({{1, flags + Arguments{"--data=whole"}}, {1, flags + Arguments{"--data=part"}}});
  };
  fs::remove(Path("part/tokens-00001.bin"));
  EXPECT_TRUE(
      OneRankFails(launch(), 1, " needs a missing shard, one of 1: cannot open " + Path("part/tokens-00001.bin")));
  EXPECT_TRUE(Fails(Weft(flags + Arguments{"--data=part"}), 2, "part/tokens-00001.bin: No such file"));
  fs::copy(Path("whole/tokens-00001.bin"), Path("part/tokens-00001.bin"));
  Write("part/index.json", Read("part/index.json") + "\n");
  EXPECT_TRUE(OneRankFails(launch(), 1, "rank 1 has "));
}

// Of 6 rows, rank 0 of two has 4.
TEST_F(RanksTest, WithWindowsByRowEachRankHasAPartOfTheShards) {
  EXPECT_TRUE(Works(Weft({"tokenize", "--out=whole", "--vocabulary=300", "--shard-tokens=100", "text.txt"})));
  EXPECT_TRUE(Works(Weft({"tokenize", "--out=other", "--tokenizer=whole", "text.txt"})));
  const Arguments flags = Training("gpt") + Arguments{"--window-positions=by-row", "--validation=other"};
  EXPECT_TRUE(Works(Weft(flags + Arguments{"--data=whole", "--out=alone"})));
  std::vector<std::string> shards;
  for (const auto& entry : fs::directory_iterator(Path("whole"))) {
    const std::string name = entry.path().filename();
    if (name.starts_with("tokens-")) shards.push_back(name);
  }
  std::sort(shards.begin(), shards.end());
  ASSERT_GT(shards.size(), 9);
  for (const char* part : {"part0", "part1"}) fs::copy(Path("whole"), Path(part));
  const size_t cut = shards.size() * 4 / 6;
  for (size_t i = 0; i < shards.size(); ++i) {
    if (i + 2 < cut) fs::remove(Path("part1/" + shards[i]));
    if (i > cut + 2) fs::remove(Path("part0/" + shards[i]));
  }
  const CommandResult result = Launch(
      {{1, flags + Arguments{"--data=part0", "--out=run"}}, {1, flags + Arguments{"--data=part1", "--out=run"}}});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(Differences(Results("alone"), Results("run")), "");
}

TEST_F(RanksTest, BadInputIsOneErrorOfAllRanks) {
  const Arguments flags = Training("gpt");
  EXPECT_TRUE(OneRankFails(Launch({{5, flags}}), 2, "weft train gpt: --micro-batches: it is 4, but 5 ranks need"));
  EXPECT_TRUE(OneRankFails(Launch({{2, flags + Arguments{"--data=missing.txt"}}}), 2, "weft train gpt: cannot open "));
  EXPECT_TRUE(OneRankFails(Launch({{2, {"evaluate", "--model=run", "text.txt"}}}), 1,
                           "weft evaluate: runs on one process, but was started on 2 ranks"));
}

TEST_F(RanksTest, ProfileWritesATraceOfRank0) {
  const CommandResult result = Launch({{2, {"profile", "charcpu", "--runs=1", "--out=trace.json"}}});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("charcpu: "));
  EXPECT_THAT(Read("trace.json"), HasSubstr("\"receives\""));
}

// Ranks on machines of their own may find other files there. A rank that ends alone would leave the others waiting.
TEST_F(RanksTest, AnErrorOfOneRankEndsAProfileOnAllRanks) {
  const auto profile = [](const std::string& graph, const std::string& out) {
    return Arguments{"profile", graph, "--runs=1", "--out=" + out};
  };
  EXPECT_TRUE(OneRankFails(Launch({{1, profile("charcpu", "trace.json")}, {1, profile("missing", "trace.json")}}), 2,
                           "weft profile: rank 1: 'missing'"));
  EXPECT_TRUE(OneRankFails(Launch({{1, profile("charcpu", "text.txt")}, {1, profile("charcpu", "trace.json")}}), 2,
                           "weft profile: rank 0: --out: text.txt is there"));
  EXPECT_FALSE(Exists("trace.json"));
  // Only rank 0 writes.
  const std::string text = Read("text.txt");
  const CommandResult result = Launch({{1, profile("charcpu", "trace.json")}, {1, profile("charcpu", "text.txt")}});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(Exists("trace.json"));
  EXPECT_EQ(Read("text.txt"), text);
}

TEST_F(RanksTest, AnErrorOfOneRankEndsACalibrationOnAllRanks) {
  const auto calibrate = [](const std::string& out) { return Arguments{"calibrate", "--network", "--out=" + out}; };
  EXPECT_TRUE(OneRankFails(Launch({{1, calibrate("text.txt")}, {1, calibrate("network.json")}}), 2,
                           "weft calibrate: rank 0: text.txt is not a calibration"));
  EXPECT_FALSE(Exists("network.json"));
  const CommandResult result = Launch({{1, calibrate("network.json")}, {1, calibrate("text.txt")}});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(Read("network.json"), HasSubstr("\"network\""));
}

TEST_F(RanksTest, RanksWithFewerMicroBatchesCostTime) {
  const CommandResult result = Launch({{3, Training("gpt") + Arguments{"--steps=1"}}});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err,
              HasSubstr("\nrank 0 has 2 of 4 micro-batches, the others 1: 33% of the ranks' time is idle\n"));
  EXPECT_TRUE(Exists("runs/gpt-1/model.safetensors"));
  EXPECT_FALSE(Exists("runs/gpt-2"));
}

}  // namespace
}  // namespace weft
