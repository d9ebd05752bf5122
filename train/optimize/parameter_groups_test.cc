#include "gtest/gtest.h"
#include "weft/train/optimize/optimizer.h"

namespace weft {
namespace {

TEST(ParameterGroupsTest, TheFirstMatchWins) {
  const auto groups =
      ParseParameterGroups(" *.bias : decay=0 ;wte.*:frozen; h.?.*:rate=0.5, decay=0.1;h.*:rate=2;head:adamw");
  ASSERT_TRUE(groups.ok()) << groups.status();
  ASSERT_EQ(groups->size(), 5);
  const ParameterGroup* bias = FindGroup(*groups, "h.0.attn.bias");
  EXPECT_EQ(bias, &(*groups)[0]);
  EXPECT_EQ(bias->weight_decay, 0);
  EXPECT_EQ(bias->rate_scale, 1);
  EXPECT_TRUE(FindGroup(*groups, "wte.weight")->frozen);
  EXPECT_EQ(FindGroup(*groups, "h.0.attn.weight")->rate_scale, 0.5);
  EXPECT_EQ(FindGroup(*groups, "h.0.attn.weight")->weight_decay, 0.1);
  EXPECT_EQ(FindGroup(*groups, "h.10.attn.weight")->rate_scale, 2);
  EXPECT_FALSE(FindGroup(*groups, "h.10.attn.weight")->weight_decay.has_value());
  EXPECT_TRUE(FindGroup(*groups, "head")->adamw);
  EXPECT_EQ(FindGroup(*groups, "ln_f.weight"), nullptr);
  EXPECT_EQ(FindGroup(*groups, "x.wte.weight"), nullptr);
}

TEST(ParameterGroupsTest, Errors) {
  EXPECT_TRUE(ParseParameterGroups("")->empty());
  const struct {
    const char *text, *error;
  } kRows[] = {
      {"wte.*", "groups: 'wte.*' has no settings, as in 'wte.*:frozen'"},
      {"wte.*:", "groups: 'wte.*' has '', wanted rate=FACTOR, decay=NUMBER, frozen or adamw"},
      {"wte.*:froze", "groups: 'wte.*' has 'froze', wanted rate=FACTOR, decay=NUMBER, frozen or adamw"},
      {"wte.*:speed=1", "groups: 'wte.*' has 'speed=1', wanted rate=FACTOR, decay=NUMBER, frozen or adamw"},
      {"wte.*:rate=fast", "groups: 'wte.*' has 'rate=fast', which is not a number"},
      {"wte.*:rate=-1", "groups: 'wte.*' has rate -1, wanted >= 0, finite"},
      {"wte.*:decay=inf", "groups: 'wte.*' has 'decay=inf', which is not a number"},
      {":frozen", "groups: a pattern is empty"},
  };
  for (const auto& [text, error] : kRows) EXPECT_EQ(ParseParameterGroups(text).status().message(), error) << text;
}

TEST(ParameterGroupsTest, EachPatternMustMatch) {
  EXPECT_TRUE(CheckGroups({{.pattern = "w?"}, {.pattern = "*"}}, {"w1", "b"}).ok());
  EXPECT_EQ(CheckGroups({{.pattern = "w?"}}, {"w", "b"}).message(),
            "groups: 'w?' matches none of the 2 weights, such as 'w'");
  EXPECT_EQ(CheckGroups({{.pattern = "*", .frozen = true}}, {"w", "b"}).message(),
            "groups: all 2 weights are frozen, so that there is nothing to train");
  EXPECT_TRUE(CheckGroups({{.pattern = "w"}, {.pattern = "*", .frozen = true}}, {"w", "b"}).ok());
  EXPECT_EQ(CheckGroups({{.pattern = "b", .rate_scale = -1}}, {"w", "b"}).message(),
            "groups: 'b' has rate -1, wanted >= 0, finite");
}

}  // namespace
}  // namespace weft
