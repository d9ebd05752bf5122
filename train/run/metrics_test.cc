#include "weft/train/run/metrics.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "weft/core/file.h"

namespace weft {
namespace {

Metrics Line(int64_t step) {
  return {.step = step,
          .tokens = step * 768,
          .seconds = 0.5 * static_cast<double>(step),
          .training =
              Metrics::Training{.loss = 4.1, .learning_rate = 1e-3, .gradient_norm = 0.1, .tokens_per_second = 3e4}};
}

TEST(MetricsTest, PrintsALineThatReadsBack) {
  Metrics line = Line(3);
  EXPECT_EQ(ToJsonLine(line),
            R"({"step":3,"tokens":2304,"seconds":1.5,"train_loss":4.1,"learning_rate":0.001,"grad_norm":0.1,)"
            R"("tokens_per_second":30000.0})");
  line.validation = {.loss = 1.0 / 3};
  EXPECT_EQ(
      ToJsonLine(line),
      R"({"step":3,"tokens":2304,"seconds":1.5,"train_loss":4.1,"val_loss":0.3333333333333333,"learning_rate":0.001,)"
      R"("grad_norm":0.1,"tokens_per_second":30000.0})");
  EXPECT_EQ(ToJsonLine({.step = 1, .memory = 123456789}), R"({"step":1,"tokens":0,"seconds":0.0,"memory":123456789})");
}

TEST(MetricsTest, HasTheLossForAByte) {
  const Metrics line = {.step = 1, .validation = Metrics::Validation{.loss = 2.5, .bits_per_byte = 1.5}};
  EXPECT_EQ(ToJsonLine(line), R"({"step":1,"tokens":0,"seconds":0.0,"val_loss":2.5,"val_bits_per_byte":1.5})");
}

TEST(MetricsTest, DropsWhatCameAfterTheCheckpoint) {
  const std::string path = testing::TempDir() + "/metrics.jsonl";
  std::remove(path.c_str());
  {
    absl::StatusOr<MetricsFile> file = MetricsFile::Open(path, -1);
    ASSERT_TRUE(file.ok()) << file.status();
    for (int64_t step : {1, 2, 3}) ASSERT_TRUE(file->Append(Line(step)).ok());
  }
  const std::string whole = *ReadFile(path);
  std::ofstream(path, std::ios::app) << R"({"step":4,"tok)";  // cut short
  {
    absl::StatusOr<MetricsFile> file = MetricsFile::Open(path, 2);
    ASSERT_TRUE(file.ok());
    EXPECT_EQ(file->seconds(), 1);
    ASSERT_TRUE(file->Append(Line(3)).ok());
    ASSERT_TRUE(file->Sync().ok());
  }
  EXPECT_EQ(*ReadFile(path), whole);
  ASSERT_TRUE(MetricsFile::Open(path, -1).ok());
  EXPECT_EQ(*ReadFile(path), "");
}

TEST(MetricsTest, CountsDamagedLinesAndIgnoresImpossibleFigures) {
  const std::string path = testing::TempDir() + "/damaged.jsonl";
  std::ofstream(path) << R"({"step":1,"tokens":768,"seconds":2}
{"step":2,"tok#ns":1536,
not json
{"stfp":3}
{"step":3,"tokens":1e300,"seconds":1e300}
{"step":4,"tokens":18446744073709551615,"seconds":-1}
{"step":5,"to)";  // cut short by a kill
  const absl::StatusOr<MetricsFile> file = MetricsFile::Open(path, 9);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->damaged_lines(), 3);
  EXPECT_EQ(file->tokens(), 768);
  EXPECT_EQ(file->seconds(), 2);
  EXPECT_EQ(MetricsFile::Open(path, 9)->damaged_lines(), 0) << "they were removed";
}

}  // namespace
}  // namespace weft
