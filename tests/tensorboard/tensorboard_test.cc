// TensorBoard's own package reads what train/run/event_file.h writes. WEFT_TENSORBOARD names a Python interpreter that
// has the package; without it the test skips.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "weft/base/file.h"
#include "weft/core/initializer.h"
#include "weft/core/parameters.h"
#include "weft/core/program.h"
#include "weft/core/tensor.h"
#include "weft/tests/subprocess.h"
#include "weft/train/run/event_file.h"
#include "weft/train/run/metrics.h"

namespace weft {
namespace {

using nlohmann::json;

absl::string_view BytesOf(const Tensor& tensor) {
  return {reinterpret_cast<const char*>(tensor.data), tensor.type.bytes()};
}

TEST(TensorBoardTest, TheRealPackageReadsEverything) {
  const char* const python = std::getenv("WEFT_TENSORBOARD");
  if (python == nullptr) GTEST_SKIP() << "WEFT_TENSORBOARD is not set";
  const std::string folder = testing::TempDir() + "/board", values = testing::TempDir() + "/values.f32";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  Parameters parameters({.seed = 5});
  const std::vector<ParameterSpec> specs = {{"a", {kF32, {40, 50}}, Gaussian(0.02)},
                                            {"b", {kF32, {7}}, Zeros()},
                                            {"moment", {kF32, {7}}, Zeros(), ParameterKind::kState}};
  ASSERT_TRUE(parameters.Create(specs).ok());
  absl::StatusOr<EventFile> board = EventFile::Open(folder, -1);
  ASSERT_TRUE(board.ok()) << board.status();
  ASSERT_TRUE(board->AppendMetrics({.validation = {{.loss = 5.5}}, .memory = 1000}).ok());
  ASSERT_TRUE(board->AppendMetrics({.step = 1, .training = {{4.25, 1e-3, 0.125, 3e4}}, .memory = 2000}).ok());
  ASSERT_TRUE(
      board
          ->AppendMetrics({.step = 2, .training = {{3.5, 2e-3, NAN, 2e4}}, .validation = {{3.75, 0.5}}, .memory = 3000})
          .ok());
  ASSERT_TRUE(board->AppendWeights(2, parameters).ok());
  ASSERT_TRUE(board->AppendLines(2, "sample", "# one\n\ntwo \u00e9 \xff").ok());
  ASSERT_TRUE(board->Sync().ok());

  ASSERT_TRUE(WriteFile(values, {BytesOf(*parameters.Find("a"))}).ok());
  const CommandResult read = RunCommand({python, "tests/tensorboard/read_events.py", folder, values});
  ASSERT_EQ(read.exit_code, 0) << read.err;
  json result = json::parse(read.out, nullptr, false);
  ASSERT_TRUE(result.is_object()) << read.out;

  const json scalars = json::parse(R"({
      "accuracy/validation": [[2, 0.5]],
      "gradient_norm": [[1, 0.125], [2, "nan"]],
      "learning_rate": [[1, 0.0010000000474974513], [2, 0.0020000000949949026]],
      "loss/train": [[1, 4.25], [2, 3.5]],
      "loss/validation": [[0, 5.5], [2, 3.75]],
      "memory": [[0, 1000], [1, 2000], [2, 3000]],
      "tokens_per_second": [[1, 30000], [2, 20000]]})");
  EXPECT_EQ(result["scalars"], scalars);

  ASSERT_EQ(result["tensors"].size(), 3) << read.out;
  EXPECT_EQ(result["tensors"]["sample"][0], json({"text", 2, "    # one\n    \n    two \u00e9 \uFFFD\n"}));
  EXPECT_EQ(result["tensors"]["weights/a"][0], json({"histograms", 2, result["expected"]}));
  double count = 0;
  for (const json& interval : result["expected"]) count += interval[2].get<double>();
  EXPECT_EQ(count, 40 * 50);
  EXPECT_EQ(result["tensors"]["weights/b"][0][2][29], json({0, 0, 7}));
}

}  // namespace
}  // namespace weft
