// Tests which weights of a run LoadRunWeights loads.
#include "weft/formats/run_folder.h"

#include <filesystem>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/base/file.h"
#include "weft/core/parameters.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

class RunFolderTest : public testing::Test {
 protected:
  RunFolderTest() : run_(testing::TempDir() + "run_folder_test@" + Name()) {
    std::filesystem::remove_all(run_);
    std::filesystem::create_directories(run_ + "/checkpoints");
    EXPECT_TRUE(WriteFile(run_ + "/config.json", {"{\"command\": \"train gpt\"}"}).ok());
    EXPECT_TRUE(parameters_.Create(std::vector<ParameterSpec>{{"w", {kF32, {2}}, Zeros()}}).ok());
  }

  // Writes weights [value, 2 · value] to a file of the run.
  void Write(const std::string& file, float value) {
    std::filesystem::create_directories(std::filesystem::path(run_ + "/" + file).parent_path());
    const absl::Span<float> w = parameters_.Find("w")->span<float>();
    w[0] = value, w[1] = 2 * value;
    ASSERT_TRUE(parameters_.Save(run_ + "/" + file).ok());
  }
  void WriteCheckpoint(int64_t step, float value) {
    const std::string folder = "checkpoints/" + std::to_string(step);
    Write(folder + kCheckpointState, value);
    ASSERT_TRUE(WriteFile(run_ + "/" + folder + kCheckpointInfo, {"{}"}).ok());
  }
  // Returns the first weight, or the error.
  std::string Load(const std::string& weights) {
    const absl::Status status = LoadRunWeights(run_ + weights, &parameters_);
    if (!status.ok()) return std::string(status.message());
    const absl::Span<float> w = parameters_.Find("w")->span<float>();
    EXPECT_EQ(w[1], 2 * w[0]);
    return std::to_string(w[0]);
  }

  const std::string run_;  // contains an '@', which must not confuse anything
  Parameters parameters_;

 private:
  static std::string Name() { return testing::UnitTest::GetInstance()->current_test_info()->name(); }
};

TEST_F(RunFolderTest, AnAtSignChoosesWeights) {
  WriteCheckpoint(100, 1);
  WriteCheckpoint(200, 2);
  WriteCheckpoint(300, 6);
  Write("model.safetensors", 7);
  Write("best.safetensors", 8);
  Write("ema.safetensors", 9);
  EXPECT_EQ(Load(""), "7.000000");
  EXPECT_EQ(Load("@last"), "7.000000");
  EXPECT_EQ(Load("@best"), "8.000000");
  EXPECT_EQ(Load("@ema"), "9.000000");
  EXPECT_EQ(Load("@200"), "2.000000");
  EXPECT_EQ(Load("@mean"), "3.000000");
  EXPECT_EQ(Load("@mean:2"), "4.000000");
  EXPECT_EQ(Load("@mean:1"), "6.000000");
  EXPECT_TRUE(IsRun(run_ + "@best"));
}

TEST_F(RunFolderTest, WeightsThatARunLacksAreErrors) {
  Write("model.safetensors", 7);
  EXPECT_THAT(Load("@best"), HasSubstr("the run has no best.safetensors; the option save-best of a training makes it"));
  EXPECT_THAT(Load("@ema"), HasSubstr("the run has no ema.safetensors; the option ema"));
  EXPECT_THAT(Load("@mean"), HasSubstr("the run has no checkpoints"));
  EXPECT_THAT(Load("@300"), HasSubstr("the run has no checkpoint of step 300"));
  WriteCheckpoint(100, 1);
  WriteCheckpoint(200, 1);
  EXPECT_THAT(Load("@300"), HasSubstr("no checkpoint of step 300; the checkpoints are of steps 200, 100"));
  EXPECT_THAT(Load("@mean:3"), HasSubstr("there is no mean of 3 checkpoints: the run has 2"));
  EXPECT_THAT(Load("@mean:0"), HasSubstr("there is no mean of 0 checkpoints"));
  EXPECT_THAT(Load("@meanwhile"), HasSubstr("'@meanwhile' names no weights of a run; wanted @last"));
}

TEST_F(RunFolderTest, OnlyARunHasWeightsToChoose) {
  EXPECT_EQ(ParseRunPath(run_).folder, run_);  // a folder with an '@' in its name
  EXPECT_EQ(ParseRunPath(run_ + "@ema").weights, "ema");
  EXPECT_EQ(ParseRunPath("nowhere@ema").folder, "nowhere@ema");
  EXPECT_EQ(ParseRunPath(run_ + "@").folder, run_ + "@");  // does not mean the last weights
}

}  // namespace
}  // namespace weft
