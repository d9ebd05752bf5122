#include "weft/lab/demos/demo.h"

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <variant>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

TEST(DemoTest, TablesHaveAlignedColumns) {
  const DemoResult result = {.tables = {{.name = "t",
                                         .title = "title",
                                         .columns = {"√d", "the text", "x"},
                                         .rows = {{int64_t{10}, "a", 0.123456}, {int64_t{8}, "√√", 1e-9}}}}};
  EXPECT_EQ(PrintText(result), "title\n√d  the text       x\n10  a         0.1235\n 8  √√         1e-09\n");
  EXPECT_EQ(PrintJson(result),
            "{\"t\":[{\"√d\":10,\"the_text\":\"a\",\"x\":0.123456},{\"√d\":8,\"the_text\":\"√√\",\"x\":1e-09}]}\n");
}

TEST(DemoTest, DigitsOfAMatrixFollowItsLargestNumber) {
  const auto lines = [](const std::vector<double>& row) {
    return PrintText({.matrices = {{.title = "m", .rows = 1, .columns = 4, .values = row}}});
  };
  EXPECT_EQ(lines({1, -0.0, 20, -INFINITY}), "m\n     1     0    20  -inf\n");
  EXPECT_EQ(lines({0.00004, -0.00004, 0.00006, 0.01}), "m\n  0.0000  0.0000  0.0001  0.0100\n");
  EXPECT_EQ(lines({0.5, -0.0, INFINITY, NAN}), "m\n  0.5000  0.0000     inf     nan\n");
  EXPECT_EQ(lines({0.99999, 999999, 0, 0}), "m\n       1.0000  999999.0000       0.0000       0.0000\n");
  EXPECT_EQ(lines({7.5e-8, -0.0, 0, -0.009}), "m\n  7.5e-08        0        0   -0.009\n");
  EXPECT_EQ(lines({1e20, 0.5, -1, 0}), "m\n  1e+20    0.5     -1      0\n");
  EXPECT_EQ(lines({1e308, 0, 1, -123456789}), "m\n      1e+308           0           1  -1.235e+08\n");
  EXPECT_EQ(lines({123456789, 0, 1, 0}), "m\n  123456789          0          1          0\n");
}

TEST(DemoTest, ColumnsHaveKeysOfTheirOwn) {
  const DemoResult result = {.tables = {{.name = "t", .columns = {"x y", "x_y"}, .rows = {{1.0, 2.0}}}}};
  EXPECT_DEATH(PrintJson(result), "row.contains");
  const absl::StatusOr<DemoResult> activations = ActivationsDemo().run();
  ASSERT_TRUE(activations.ok()) << activations.status();
  const nlohmann::json row = nlohmann::json::parse(PrintJson(*activations)).at("activations").at(4);  // x = 1
  EXPECT_EQ(row.size(), 7) << row;
  EXPECT_EQ(row.at("slope_of_ReLU"), 1);
  EXPECT_NEAR(row.at("slope_of_GELU"), 1.083, 1e-3);
  EXPECT_NEAR(row.at("slope_of_SiLU"), 0.928, 1e-3);
}

TEST(DemoTest, SameSeedSameFigures) {
  for (const Demo& demo : AllDemos()) {
    if (demo.name == "depth") {
      EXPECT_TRUE(SetFromText("5", demo.flags[0]).ok());  // layers; 200 take a second
    }
    const absl::StatusOr<DemoResult> a = demo.run(), b = demo.run();
    ASSERT_TRUE(a.ok()) << a.status();
    EXPECT_EQ(PrintJson(*a), PrintJson(*b)) << demo.name;
    EXPECT_EQ(a->picture, b->picture) << demo.name;
    for (const Hyperparameter& flag : demo.flags) {
      if (flag.flag == "seed" && demo.name != "heads") {  // the weights of heads are random, but their number is not
        ASSERT_TRUE(SetFromText("2", flag).ok());
        EXPECT_NE(PrintJson(*a), PrintJson(*demo.run())) << demo.name;
      }
    }
  }
}

TEST(DemoTest, PatternsAreThoseOfAttention) {
  const absl::StatusOr<DemoResult> result = PatternsDemo().run();  // 16 tokens; window, stride 4; dilation 2
  ASSERT_TRUE(result.ok()) << result.status();
  const nlohmann::json rows = nlohmann::json::parse(PrintJson(*result)).at("patterns");
  const std::map<std::string, std::pair<int, std::string>> wanted = {
      {"global", {136, "1"}},       // 1 + 2 + ... + 16
      {"local", {58, "5"}},         // 1 + 2 + 3 + 13 · 4; 3 positions a layer, and 15 are needed
      {"strided", {82, "2"}},       // and 0 + 1 + 2 + 3 multiples of 4, 4 times, less the own position
      {"dilated", {52, "never"}}};  // distances 0, 2, 4 and 6; odd ones are never seen
  for (const nlohmann::json& row : rows) {
    const auto& [scores, layers] = wanted.at(row.at("pattern"));
    EXPECT_EQ(row.at("scores"), scores) << row;
    EXPECT_EQ(row.at("layers_until_all_is_seen"), layers) << row;
  }
  EXPECT_EQ(rows.size(), wanted.size());
}

// Sets the flag of a demo, and returns the error of its run.
std::string ErrorWith(const Demo& demo, const std::string& name, const std::string& value) {
  for (const Hyperparameter& flag : demo.flags) {
    if (flag.flag == name) {
      EXPECT_TRUE(SetFromText(value, flag).ok());
    }
  }
  return std::string(demo.run().status().message());
}

// Sets the whole numbers of a demo to their low ends, except those of `kept`.
void SetToLowEnds(const Demo& demo, const std::string& kept) {
  for (const Hyperparameter& flag : demo.flags) {
    if (!std::holds_alternative<int64_t*>(flag.value) || flag.flag == kept) continue;
    EXPECT_TRUE(SetFromText(absl::StrCat(static_cast<int64_t>(flag.rules.low)), flag).ok()) << flag.flag;
  }
}

// Each whole number works at its low end, and works at its high end while the others are low. Or an error names a flag.
TEST(DemoTest, EndsOfEachFlag) {
  const auto run = [](const Demo& demo) {
    const absl::StatusOr<DemoResult> result = demo.run();
    if (result.ok()) {
      EXPECT_FALSE(PrintText(*result).empty());
      EXPECT_FALSE(PrintJson(*result).empty());
      return;
    }
    const auto is_named = [&](const Hyperparameter& flag) {
      return absl::StartsWith(result.status().message(), absl::StrCat(flag.flag, ": "));
    };
    EXPECT_TRUE(absl::c_any_of(demo.flags, is_named)) << demo.name << ": " << result.status();
  };
  size_t flags = 0;
  for (size_t d = 0; d < AllDemos().size(); ++d) {
    for (size_t f = 0; f < AllDemos()[d].flags.size(); ++f) {
      const Demo low = AllDemos()[d], high = AllDemos()[d];
      const Hyperparameter& flag = low.flags[f];
      if (!std::holds_alternative<int64_t*>(flag.value)) continue;
      SCOPED_TRACE(absl::StrCat(low.name, " --", flag.flag));
      for (const auto& [demo, end] : {std::pair(low, flag.rules.low), {high, flag.rules.high}}) {
        EXPECT_TRUE(SetFromText(absl::StrCat(static_cast<int64_t>(end)), demo.flags[f]).ok());
        if (end == flag.rules.high) SetToLowEnds(demo, flag.flag);
        run(demo);
      }
      ++flags;
    }
  }
  EXPECT_GE(flags, 20);
}

TEST(DemoTest, WrongFlags) {
  EXPECT_EQ(ErrorWith(HeadsDemo(), "heads", "3"), "heads: 3 heads do not divide the width 512");
  EXPECT_EQ(ErrorWith(PositionsDemo(), "width", "63"), "width: 63 is odd, but sinusoids come in pairs");
  EXPECT_EQ(ErrorWith(MasksDemo(), "padding", "5"), "padding: 5 of 5 tokens leave no token of the text");
  EXPECT_TRUE(absl::StartsWith(ErrorWith(ScaleDemo(), "draws", "1000000"), "draws: 1000000 draws of 16 keys"));
}

}  // namespace
}  // namespace weft
