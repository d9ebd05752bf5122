#include "weft/train/run/run_log.h"

#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/base/file.h"
#include "weft/core/parameters.h"
#include "weft/core/program.h"
#include "weft/train/run/metrics.h"

namespace weft {
namespace {

class RunLogTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(
        parameters_.Create({{.name = "w", .type = {kF32, {100, 1000}}}, {.name = "v", .type = {kF32, {2}}}}).ok());
    std::remove(path_.c_str());
    Fill("w", [](size_t i) { return static_cast<float>(i % 301); });
    Fill("v", [](size_t) { return 3.0f; });
  }
  template <class F>
  void Fill(const char* name, F value) {
    const auto values = parameters_.Find(name)->span<float>();
    for (size_t i = 0; i < values.size(); ++i) values[i] = value(i);
  }
  static RunLog Open(int64_t step) {
    absl::StatusOr<RunLog> log = RunLog::Open(testing::TempDir(), step, {.insights = true});
    EXPECT_TRUE(log.ok()) << log.status();
    return *std::move(log);
  }
  std::vector<nlohmann::json> Lines() const {
    std::vector<nlohmann::json> lines;
    std::istringstream file(*ReadFile(path_));
    for (std::string line; std::getline(file, line);) lines.push_back(nlohmann::json::parse(line));
    return lines;
  }

  const std::string path_ = testing::TempDir() + "/insights.jsonl";
  Parameters parameters_{{.seed = 1}};
};

TEST_F(RunLogTest, HistogramsUpdatesAndTheSample) {
  RunLog log = Open(-1);
  ASSERT_TRUE(log.AppendInsights(0, "a\xff\"\n", parameters_).ok());
  log.Remember(parameters_);
  Fill("w", [](size_t i) { return 1.01f * static_cast<float>(i % 301); });
  ASSERT_TRUE(log.AppendInsights(5, "", parameters_).ok());
  ASSERT_TRUE(log.Sync().ok());
  const std::vector<nlohmann::json> lines = Lines();
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].at("step"), 0);
  EXPECT_EQ(lines[0].at("sample"), "a\uFFFD\"\n");
  EXPECT_FALSE(lines[1].contains("sample"));
  const nlohmann::json &v = lines[0].at("weights").at(0), &w = lines[0].at("weights").at(1);
  EXPECT_EQ(w.at("name"), "w");
  EXPECT_EQ(w.at("low"), 0);
  EXPECT_EQ(w.at("high"), 300);
  EXPECT_FALSE(w.contains("log10_update"));
  int64_t all = 0;
  for (const auto& count : w.at("counts")) all += count.get<int64_t>();
  EXPECT_EQ(all, static_cast<int64_t>(kInsightValues));
  EXPECT_EQ(v.at("low"), v.at("high"));
  EXPECT_EQ(v.at("counts").at(29), 2);
  EXPECT_NEAR(lines[1].at("weights").at(1).at("log10_update").get<double>(), std::log10(0.01 / 1.01), 1e-3);
  EXPECT_FALSE(lines[1].at("weights").at(0).contains("log10_update")) << "v has not changed";
}

TEST_F(RunLogTest, AResumedRunContinuesAfterItsStep) {
  {
    RunLog log = Open(-1);
    for (int step : {0, 5, 10}) ASSERT_TRUE(log.AppendInsights(step, "text", parameters_).ok());
  }
  const std::string whole = *ReadFile(path_);
  ASSERT_TRUE(Open(5).AppendInsights(10, "text", parameters_).ok());
  EXPECT_EQ(*ReadFile(path_), whole);
  ASSERT_TRUE(Open(-1).AppendInsights(0, "", parameters_).ok());
  EXPECT_EQ(Lines().size(), 1u);
}

TEST_F(RunLogTest, ValuesThatAreNotFinite) {
  RunLog log = Open(-1);
  log.Remember(parameters_);
  Fill("v", [](size_t) { return NAN; });
  ASSERT_TRUE(log.AppendInsights(1, "", parameters_).ok());
  const nlohmann::json v = Lines()[0].at("weights").at(0);
  EXPECT_EQ(v.at("counts").at(29), 0);
  EXPECT_FALSE(v.contains("log10_update"));
}

Metrics Line(int64_t step) {
  return {.step = step,
          .tokens = step * 768,
          .seconds = 0.5 * static_cast<double>(step),
          .training =
              Metrics::Training{.loss = 4.1, .learning_rate = 1e-3, .gradient_norm = 0.1, .tokens_per_second = 3e4}};
}

TEST(RunLogMetricsTest, DropsWhatCameAfterTheCheckpoint) {
  const std::string path = testing::TempDir() + "/metrics.jsonl";
  std::remove(path.c_str());
  {
    absl::StatusOr<RunLog> log = RunLog::Open(testing::TempDir(), -1);
    ASSERT_TRUE(log.ok()) << log.status();
    for (int64_t step : {1, 2, 3}) ASSERT_TRUE(log->Append(Line(step), {}).ok());
  }
  const std::string whole = *ReadFile(path);
  std::ofstream(path, std::ios::app) << R"({"step":4,"tok)";  // cut short
  {
    absl::StatusOr<RunLog> log = RunLog::Open(testing::TempDir(), 2);
    ASSERT_TRUE(log.ok());
    EXPECT_EQ(log->seconds(), 1);
    ASSERT_TRUE(log->Append(Line(3), {}).ok());
    ASSERT_TRUE(log->Sync().ok());
  }
  EXPECT_EQ(*ReadFile(path), whole);
  ASSERT_TRUE(RunLog::Open(testing::TempDir(), -1).ok());
  EXPECT_EQ(*ReadFile(path), "");
}

TEST(RunLogMetricsTest, CountsDamagedLinesAndIgnoresImpossibleFigures) {
  const std::string path = testing::TempDir() + "/metrics.jsonl";
  std::ofstream(path) << R"({"step":1,"tokens":768,"seconds":2}
{"step":2,"tok#ns":1536,
not json
{"stfp":3}
{"step":3,"tokens":1e300,"seconds":1e300}
{"step":4,"tokens":18446744073709551615,"seconds":-1}
{"step":5,"to)";  // cut short by a kill
  const absl::StatusOr<RunLog> log = RunLog::Open(testing::TempDir(), 9);
  ASSERT_TRUE(log.ok()) << log.status();
  EXPECT_THAT(log->warnings(), testing::ElementsAre("removed damaged lines from " + path + ": 3"));
  EXPECT_EQ(log->tokens(), 768);
  EXPECT_EQ(log->seconds(), 2);
  EXPECT_TRUE(RunLog::Open(testing::TempDir(), 9)->warnings().empty()) << "they were removed";
}

TEST(RunLogMetricsTest, OneOfSeveralRanksKeepsItsErrorForTheOthers) {
  absl::StatusOr<RunLog> log = RunLog::Open(testing::TempDir(), -1, {.tensorboard = true, .keeps_errors = true});
  ASSERT_TRUE(log.ok()) << log.status();
  Metrics line = Line(5);
  EXPECT_TRUE(log->Append(line, {}).ok());
  EXPECT_TRUE(log->error().ok());
  line.step = 4;  // an event can't follow one of a later step
  EXPECT_TRUE(log->Append(line, {}).ok());
  EXPECT_FALSE(log->error().ok());
  EXPECT_EQ(log->Sync(), log->error());
}

}  // namespace
}  // namespace weft
