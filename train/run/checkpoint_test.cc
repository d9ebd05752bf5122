#include "weft/train/run/checkpoint.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "weft/base/file.h"
#include "weft/formats/run_folder.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

class CheckpointTest : public testing::Test {
 protected:
  CheckpointTest() : run_(testing::TempDir() + "/checkpoint_test"), folder_(run_ + "/checkpoints") {
    fs::remove_all(run_);
    EXPECT_TRUE(Create(&parameters_).ok());
  }
  static absl::Status Create(Parameters* parameters) {
    const ParameterSpec specs[] = {
        {"w", {kF32, {2, 3}}, Gaussian(1)},
        {"adamw.m.w", {kF32, {2, 3}}, Zeros(), ParameterKind::kState},
    };
    return parameters->Create(specs);
  }
  static float& First(Parameters& parameters, const char* name) { return *parameters.Find(name)->as<float>(); }

  absl::Status Save(int64_t step) {
    return SaveCheckpoint(folder_, {.step = step, .seed = 7, .parameters_step = 9, .data = "abc"}, parameters_);
  }

  std::string run_, folder_;
  Parameters parameters_;
};

TEST_F(CheckpointTest, BringsEverythingBack) {
  First(parameters_, "w") = 2.5f;
  First(parameters_, "adamw.m.w") = -1;
  ASSERT_TRUE(Save(40).ok());
  const absl::StatusOr<CheckpointInfo> info = ReadCheckpointInfo(folder_, 40);
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->seed, 7);
  EXPECT_EQ(info->data, "abc");
  Parameters other;
  ASSERT_TRUE(Create(&other).ok());
  ASSERT_TRUE(LoadCheckpoint(folder_, *info, &other).ok());
  EXPECT_EQ(First(other, "w"), 2.5f);
  EXPECT_EQ(First(other, "adamw.m.w"), -1);
  EXPECT_EQ(other.step(), 9);
}

TEST_F(CheckpointTest, KeepsTheNewestTwoAndPassesOverWhatIsNotWhole) {
  EXPECT_TRUE(ListCheckpoints(folder_).empty());
  for (int64_t step : {5, 50, 500}) ASSERT_TRUE(Save(step).ok());
  fs::create_directories(folder_ + "/.writing-900");
  fs::create_directories(folder_ + "/800");  // without its files
  std::ofstream(folder_ + "/700") << "x";
  EXPECT_EQ(ListCheckpoints(folder_), (std::vector<int64_t>{500, 50}));
}

TEST_F(CheckpointTest, KeepsAllIfMoreThan32BitsAreAskedFor) {
  for (int64_t step : {5, 50, 500}) {
    const CheckpointInfo info = {.step = step, .seed = 7, .parameters_step = 9, .data = "abc"};
    ASSERT_TRUE(SaveCheckpoint(folder_, info, parameters_, /*keep=*/int64_t{1} << 32).ok());
  }
  EXPECT_EQ(ListCheckpoints(folder_), (std::vector<int64_t>{500, 50, 5}));
}

// A resumed run passed over the newer ones, because they cannot be read.
TEST_F(CheckpointTest, NewerOnesGoBeforeThoseThatAreContinued) {
  for (int64_t step : {500, 900, 1000}) ASSERT_TRUE(Save(step).ok());
  ASSERT_TRUE(Save(600).ok());
  EXPECT_EQ(ListCheckpoints(folder_), (std::vector<int64_t>{1000, 600}));
  ASSERT_TRUE(Save(700).ok());
  EXPECT_EQ(ListCheckpoints(folder_), (std::vector<int64_t>{700, 600}));
}

// A program that was killed while it removed a checkpoint left any part of the checkpoint's files.
TEST_F(CheckpointTest, TidiesARemovalThatWasCutOff) {
  for (int64_t step : {5, 50}) ASSERT_TRUE(Save(step).ok());
  fs::create_directories(folder_ + "/.removing-5");
  std::ofstream(folder_ + "/.removing-5/state.safetensors") << "x";
  ASSERT_TRUE(Save(500).ok());  // removes the checkpoint of step 5
  EXPECT_FALSE(fs::exists(folder_ + "/.removing-5"));
  EXPECT_EQ(ListCheckpoints(folder_), (std::vector<int64_t>{500, 50}));
  fs::create_directories(folder_ + "/.removing-1");
  std::ofstream(folder_ + "/.removing-1/state.safetensors") << "x";
  ASSERT_TRUE(TidyCheckpoints(folder_).ok());
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 2);
}

TEST_F(CheckpointTest, ReplacesOneOfTheSameStep) {
  ASSERT_TRUE(Save(5).ok());
  First(parameters_, "w") = 8;
  ASSERT_TRUE(Save(5).ok());
  Parameters other;
  ASSERT_TRUE(Create(&other).ok());
  ASSERT_TRUE(LoadCheckpoint(folder_, *ReadCheckpointInfo(folder_, 5), &other).ok());
  EXPECT_EQ(First(other, "w"), 8);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

TEST_F(CheckpointTest, RefusesDamage) {
  ASSERT_TRUE(Save(5).ok());
  fs::resize_file(folder_ + "/5/state.safetensors", 60);
  EXPECT_FALSE(LoadCheckpoint(folder_, *ReadCheckpointInfo(folder_, 5), &parameters_).ok());
  std::ofstream(folder_ + "/5/checkpoint.json") << "{}";
  EXPECT_FALSE(ReadCheckpointInfo(folder_, 5).ok());
}

// Each bit of both files is flipped in turn. No load may succeed, and the error must name the file.
TEST_F(CheckpointTest, FindsEveryFlippedBit) {
  ASSERT_TRUE(SaveCheckpoint(folder_, {.step = 5, .data = "abc", .trainer = R"({"a":1})"}, parameters_).ok());
  for (const char* name : {kCheckpointState, kCheckpointInfo}) {
    const std::string path = folder_ + "/5" + name, whole = *ReadFile(path);
    std::string flipped = whole;
    for (size_t bit = 0; bit < 8 * whole.size(); ++bit) {
      flipped[bit / 8] ^= static_cast<char>(1 << bit % 8);
      std::ofstream(path, std::ios::binary) << flipped;
      flipped[bit / 8] = whole[bit / 8];
      const absl::StatusOr<CheckpointInfo> info = ReadCheckpointInfo(folder_, 5);
      const absl::Status status = info.ok() ? LoadCheckpoint(folder_, *info, &parameters_) : info.status();
      ASSERT_FALSE(status.ok()) << name << ", bit " << bit;
      EXPECT_NE(status.message().find(path), std::string::npos) << status;
    }
    std::ofstream(path, std::ios::binary) << whole;
  }
  EXPECT_TRUE(LoadCheckpoint(folder_, *ReadCheckpointInfo(folder_, 5), &parameters_).ok());
}

// Weft 0.1.0 wrote such files at first, and runs with them can be resumed.
TEST_F(CheckpointTest, ReadsFilesWithoutChecksums) {
  ASSERT_TRUE(Save(5).ok());
  std::ofstream(folder_ + "/5/checkpoint.json")
      << R"({"step": 5, "seed": 7, "parameters_step": 9, "data": "abc", "version": "0.1.0", "cpu": "avx2"})";
  std::string header = R"({"adamw.m.w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
                       R"("w":{"dtype":"F32","shape":[2,3],"data_offsets":[24,48]}})";
  std::string file(1, static_cast<char>(header.size()));
  file += std::string(7, '\0') + header + std::string(48, '\0');
  ASSERT_TRUE(WriteFile(folder_ + "/5/state.safetensors", {file}).ok());
  const absl::StatusOr<CheckpointInfo> info = ReadCheckpointInfo(folder_, 5);
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->trainer, "{}");
  First(parameters_, "w") = 1;
  EXPECT_TRUE(LoadCheckpoint(folder_, *info, &parameters_).ok());
  EXPECT_EQ(First(parameters_, "w"), 0);
}

TEST_F(CheckpointTest, KeepsTheTrainersObject) {
  const std::string trainer = R"({"skipped":3,"history":[{"step":5,"loss":1.25}],"name":"é"})";
  ASSERT_TRUE(SaveCheckpoint(folder_, {.step = 5, .trainer = trainer}, parameters_).ok());
  EXPECT_EQ(ReadCheckpointInfo(folder_, 5)->trainer, trainer);
  EXPECT_EQ(SaveCheckpoint(folder_, {.step = 6, .trainer = "[1]"}, parameters_).message(),
            "trainer: it is not a JSON object");
}

TEST_F(CheckpointTest, ADamagedModelIsNotUsed) {
  ASSERT_TRUE(Save(5).ok());
  const std::string path = run_ + "/model.safetensors";
  ASSERT_TRUE(parameters_.Save(path).ok());
  std::string bytes = *ReadFile(path);
  bytes.back() ^= 1;
  ASSERT_TRUE(WriteFile(path, {bytes}).ok());
  const absl::Status status = LoadRunWeights(run_, &parameters_);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_NE(status.message().find(path + ": it is damaged"), std::string::npos) << status;
  EXPECT_NE(status.message().find("remove this file"), std::string::npos) << status;
}

TEST_F(CheckpointTest, ARunsWeightsComeFromItsModelOrItsNewestCheckpoint) {
  EXPECT_FALSE(LoadRunWeights(run_, &parameters_).ok());
  First(parameters_, "w") = 3;
  ASSERT_TRUE(Save(5).ok());
  First(parameters_, "w") = 0;
  ASSERT_TRUE(LoadRunWeights(run_, &parameters_).ok());
  EXPECT_EQ(First(parameters_, "w"), 3);
  First(parameters_, "w") = 4;
  ASSERT_TRUE(parameters_.Save(run_ + "/model.safetensors").ok());
  First(parameters_, "w") = 0;
  ASSERT_TRUE(LoadRunWeights(run_, &parameters_).ok());
  EXPECT_EQ(First(parameters_, "w"), 4);
}

}  // namespace
}  // namespace weft
