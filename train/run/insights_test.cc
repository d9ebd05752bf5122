#include "weft/train/run/insights.h"

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/file.h"
#include "weft/core/program.h"

namespace weft {
namespace {

class InsightsTest : public testing::Test {
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
  Insights Open(int64_t step) const {
    absl::StatusOr<Insights> insights = Insights::Open(path_, step);
    EXPECT_TRUE(insights.ok()) << insights.status();
    return *std::move(insights);
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

TEST_F(InsightsTest, HistogramsUpdatesAndTheSample) {
  Insights insights = Open(-1);
  ASSERT_TRUE(insights.Append(0, "a\xff\"\n", parameters_).ok());
  insights.Remember(parameters_);
  Fill("w", [](size_t i) { return 1.01f * static_cast<float>(i % 301); });
  ASSERT_TRUE(insights.Append(5, "", parameters_).ok());
  ASSERT_TRUE(insights.Sync().ok());
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

TEST_F(InsightsTest, AResumedRunContinuesAfterItsStep) {
  {
    Insights insights = Open(-1);
    for (int step : {0, 5, 10}) ASSERT_TRUE(insights.Append(step, "text", parameters_).ok());
  }
  const std::string whole = *ReadFile(path_);
  ASSERT_TRUE(Open(5).Append(10, "text", parameters_).ok());
  EXPECT_EQ(*ReadFile(path_), whole);
  ASSERT_TRUE(Open(-1).Append(0, "", parameters_).ok());
  EXPECT_EQ(Lines().size(), 1u);
}

TEST_F(InsightsTest, ValuesThatAreNotFinite) {
  Insights insights = Open(-1);
  insights.Remember(parameters_);
  Fill("v", [](size_t) { return NAN; });
  ASSERT_TRUE(insights.Append(1, "", parameters_).ok());
  const nlohmann::json v = Lines()[0].at("weights").at(0);
  EXPECT_EQ(v.at("counts").at(29), 0);
  EXPECT_FALSE(v.contains("log10_update"));
}

}  // namespace
}  // namespace weft
