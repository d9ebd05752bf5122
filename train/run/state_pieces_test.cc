// Tests that checkpoints whose states are cut into pieces can be loaded with other pieces.
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/safetensors.h"
#include "weft/formats/run_folder.h"
#include "weft/train/run/checkpoint.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

// Adds rows begin .. end - 1 of a state "m.w" [6, 2] under the name `name`. The elements of the state are 0 .. 11.
void AddRows(const std::string& name, int64_t begin, int64_t end, Parameters* parameters) {
  const ParameterSpec spec = {name, {kF32, {end - begin, 2}}, Zeros(), ParameterKind::kState};
  ASSERT_TRUE(parameters->Create({&spec, 1}).ok());
  float* const values = parameters->Find(name)->as<float>();
  std::iota(values, values + 2 * (end - begin), static_cast<float>(2 * begin));
}

void AddWeight(float value, Parameters* parameters) {
  const ParameterSpec spec = {"w", {kF32, {1}}, Zeros(), ParameterKind::kWeight};
  ASSERT_TRUE(parameters->Create({&spec, 1}).ok());
  *parameters->Find("w")->as<float>() = value;
}

class StatePiecesTest : public ::testing::Test {
 protected:
  // Writes the files of two ranks, which have the rows 0 .. 3 and 4 .. 5.
  void SetUp() override {
    checkpoints_ = ::testing::TempDir() + "/" + ::testing::UnitTest::GetInstance()->current_test_info()->name();
    folder_ = CheckpointFolder(checkpoints_, /*step=*/0);
    std::filesystem::create_directories(folder_);
    Parameters first, second;
    AddWeight(7, &first);
    AddWeight(7, &second);
    AddRows("m.w[0:4]", 0, 4, &first);
    AddRows("m.w[4:6]", 4, 6, &second);
    ASSERT_TRUE(first.Save(folder_ + kCheckpointState, Parameters::kAll).ok());
    ASSERT_TRUE(WriteStatePieces(folder_, 1, second).ok());
  }

  // Expects that the rows begin .. end - 1 are loaded as the parameter `name`.
  void CheckLoad(const std::string& name, int64_t begin, int64_t end) {
    Parameters wanted, loaded;
    AddRows(name, begin, end, &wanted);
    AddRows(name, 0, end - begin, &loaded);
    AddWeight(0, &loaded);
    const absl::Status status = Load(&loaded);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(*loaded.Find("w")->as<float>(), 7);
    const auto values = [&](const Parameters& p) {
      const absl::Span<float> span = p.Find(name)->span<float>();
      return std::vector<float>(span.begin(), span.end());
    };
    EXPECT_EQ(values(loaded), values(wanted));
  }

  absl::Status Load(Parameters* parameters) const { return LoadCheckpoint(checkpoints_, {.step = 0}, parameters); }

  std::string checkpoints_, folder_;
};

TEST_F(StatePiecesTest, AnyNumberOfRanksLoadsThem) {
  CheckLoad("m.w", 0, 6);
  CheckLoad("m.w[0:4]", 0, 4);
  CheckLoad("m.w[2:5]", 2, 5);
  CheckLoad("m.w[4:6]", 4, 6);
}

TEST_F(StatePiecesTest, PiecesOfAWholeTensorAreLoaded) {
  Parameters whole;
  AddWeight(7, &whole);
  AddRows("m.w", 0, 6, &whole);
  std::filesystem::remove(folder_ + "/state.1.safetensors");
  ASSERT_TRUE(whole.Save(folder_ + kCheckpointState, Parameters::kAll).ok());
  CheckLoad("m.w[2:5]", 2, 5);
}

TEST_F(StatePiecesTest, AMissingFileIsAnError) {
  std::filesystem::remove(folder_ + "/state.1.safetensors");
  Parameters loaded;
  AddWeight(0, &loaded);
  AddRows("m.w", 0, 6, &loaded);
  const absl::Status status = Load(&loaded);
  EXPECT_THAT(std::string(status.message()), HasSubstr("m.w"));
  EXPECT_EQ(*loaded.Find("w")->as<float>(), 0);
}

TEST_F(StatePiecesTest, ADamagedFileIsNamed) {
  std::filesystem::resize_file(folder_ + "/state.1.safetensors", 90);
  Parameters loaded;
  AddWeight(0, &loaded);
  AddRows("m.w", 0, 6, &loaded);
  EXPECT_THAT(std::string(Load(&loaded).message()), HasSubstr("state.1.safetensors"));
}

TEST_F(StatePiecesTest, UnexpectedTensorsAreErrors) {
  Parameters loaded;
  AddWeight(0, &loaded);
  EXPECT_THAT(std::string(Load(&loaded).message()), HasSubstr("m.w[0:4]"));
}

}  // namespace
}  // namespace weft
