#include "weft/lab/reports/attention_report.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/escaping.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

// Each target of every head takes 3/4 from source 0 and 1/4 from its own position.
AttentionMaps Maps(const std::string& kind, int64_t layers, int64_t heads, size_t targets, size_t sources) {
  AttentionMaps maps = {.kind = kind, .layers = layers, .heads = heads};
  for (size_t i = 0; i < targets; ++i) maps.targets.push_back("t" + std::to_string(i));
  for (size_t i = 0; i < sources; ++i) maps.sources.push_back("s" + std::to_string(i));
  maps.weights.resize(static_cast<size_t>(layers * heads) * targets * sources);
  for (size_t row = 0; row < maps.weights.size() / sources; ++row) {
    maps.weights[row * sources] += 0.75f;
    maps.weights[row * sources + row % targets % sources] += 0.25f;
  }
  return maps;
}

Json DataOf(const std::string& page) {
  const std::string begin = "<script id=\"data\" type=\"application/json\">";
  const size_t from = page.find(begin) + begin.size();
  return Json::parse(page.substr(from, page.find("</script>", from) - from));
}

TEST(AttentionReportTest, TheJsonHasTokensAndNestedWeights) {
  const Json one = Json::parse(AttentionJson({.family = "gpt", .maps = {Maps("attention", 2, 3, 4, 4)}}));
  EXPECT_EQ(one["tokens"], Json({"t0", "t1", "t2", "t3"}));
  ASSERT_EQ(one["attention"].size(), 2);
  ASSERT_EQ(one["attention"][1].size(), 3);
  EXPECT_EQ(one["attention"][1][2][3], Json({0.75, 0, 0, 0.25}));

  const Json three = Json::parse(
      AttentionJson({.family = "transformer",
                     .maps = {Maps("encoder", 1, 2, 3, 3), Maps("decoder", 1, 2, 2, 2), Maps("cross", 1, 2, 2, 3)}}));
  EXPECT_EQ(three["tokens"]["encoder"], Json({"s0", "s1", "s2"}));
  EXPECT_EQ(three["tokens"]["decoder"], Json({"t0", "t1"}));
  EXPECT_EQ(three["cross"][0][1][1], Json({0.75, 0.25, 0}));
  EXPECT_FALSE(three.contains("attention"));
}

TEST(AttentionReportTest, AllFormsSayThatSpecialTokensAreLeftOut) {
  AttentionWeights weights = {.family = "gpt", .maps = {Maps("attention", 1, 1, 2, 2)}};
  const auto without = [&] { return Json::parse(AttentionJson(weights)).value("without_special_tokens", false); };
  EXPECT_FALSE(without());
  EXPECT_FALSE(DataOf(AttentionPage(weights, ""))["maps"][0]["withoutSpecial"]);
  LeaveOutSpecialTokens(&weights.maps[0]);
  EXPECT_TRUE(without());
  EXPECT_TRUE(DataOf(AttentionPage(weights, ""))["maps"][0]["withoutSpecial"]);
  EXPECT_THAT(*AttentionText(weights, {}, {}),
              HasSubstr("attention: 1 layers, 1 heads, 2 targets, 2 sources, without special tokens\n"));
}

TEST(AttentionReportTest, ThePageHasEveryWeightAndEveryMeasure) {
  const Json data = DataOf(AttentionPage({.family = "bert", .maps = {Maps("attention", 12, 12, 64, 64)}}, "a text"));
  const Json& maps = data["maps"][0];
  EXPECT_EQ(maps["targets"].size(), 64);
  EXPECT_EQ(maps["measures"].size(), 144);
  EXPECT_EQ(maps["measures"][0][3], 1);  // the greatest sum of a row
  std::string bytes;
  ASSERT_TRUE(absl::Base64Unescape(maps["weights"].get<std::string>(), &bytes));
  ASSERT_EQ(bytes.size(), 144 * 64 * 64);
  EXPECT_EQ(static_cast<uint8_t>(bytes[64 + 1]), std::lround(255 * std::sqrt(0.25)));
}

TEST(AttentionReportTest, APageOfALargeModelStaysSmall) {
  EXPECT_LT(AttentionPage({.family = "gpt", .maps = {Maps("attention", 12, 12, 64, 64)}}, "").size(), 3'000'000);
}

TEST(AttentionReportTest, ALongTextIsCutAndThePageSaysSo) {
  const std::string page = AttentionPage({.family = "gpt", .maps = {Maps("attention", 1, 1, 3000, 3000)}}, "long");
  const Json data = DataOf(page), &maps = data["maps"][0];
  EXPECT_EQ(maps["allTargets"], 3000);
  EXPECT_LT(maps["targets"].size(), 3000);
  EXPECT_LE(maps["targets"].size() * maps["sources"].size(), static_cast<size_t>(kMaxPageWeights));
  EXPECT_GT(maps["targets"].size() * maps["sources"].size(), static_cast<size_t>(kMaxPageWeights) * 9 / 10);
  EXPECT_EQ(maps["strongest"][0].size(), maps["targets"].size());
  EXPECT_THAT(page, HasSubstr("The maps show the first"));
}

TEST(AttentionReportTest, MarkupInATextStaysText) {
  AttentionMaps maps = Maps("attention", 1, 1, 2, 2);
  maps.targets[0] = maps.sources[0] = "</script><img src=x onerror=alert(1)>";
  maps.targets[1] = maps.sources[1] = "\x01\"'&\xff";
  const std::string page = AttentionPage({.family = "gpt", .maps = {maps}}, "<b>\xe6\x88");
  EXPECT_THAT(page, Not(HasSubstr("<img")));
  EXPECT_THAT(page, Not(HasSubstr("<b>")));
  EXPECT_EQ(DataOf(page)["maps"][0]["targets"][0], "</script><img src=x onerror=alert(1)>");
  const absl::StatusOr<std::string> text = AttentionText({.family = "gpt", .maps = {maps}}, {}, {});
  ASSERT_TRUE(text.ok());
  EXPECT_THAT(*text, HasSubstr("<0x01>"));
  EXPECT_THAT(*text, Not(HasSubstr("\x01")));
}

TEST(AttentionReportTest, ThePictureIsScaledToBytes) {
  const AttendedPicture picture = {.height = 2, .width = 2, .patch_size = 1, .pixels = {0, 4, 8, 16}};
  const Json data =
      DataOf(AttentionPage({.family = "vit", .maps = {Maps("attention", 1, 1, 5, 5)}, .picture = picture}, "p.csv"));
  EXPECT_EQ(data["picture"]["pixels"], absl::Base64Escape(std::string("\x00\x40\x80\xff", 4)));
}

TEST(AttentionReportTest, TheTerminalShowsOneHeadOrTheMean) {
  const AttentionWeights weights = {.family = "gpt", .maps = {Maps("attention", 2, 2, 3, 3)}};
  const absl::StatusOr<std::string> text = AttentionText(weights, 1, 2);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, HasSubstr("layer 1, head 2: a line for each target, a column for each source\n"));
  EXPECT_THAT(*text, HasSubstr("  █ ▒ │ t2 ←  s0 0.75  s2 0.25\n"));
  EXPECT_THAT(std::string(AttentionText(weights, 3, {}).status().message()),
              HasSubstr("layer 3: the model's layers are 1 to 2"));
  EXPECT_THAT(std::string(AttentionText(weights, 1, 3).status().message()),
              HasSubstr("head 3: the model's heads are 1 to 2"));
}

}  // namespace
}  // namespace weft
