#include "weft/core/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace weft {
namespace {

using ::testing::HasSubstr;

TEST(JsonTest, ReadsAnObject) {
  const auto json = ParseJsonObject(R"({"b": [1, {"c": "d"}], "a": 2.5})");
  ASSERT_TRUE(json.ok()) << json.status();
  EXPECT_EQ(json->dump(), R"({"b":[1,{"c":"d"}],"a":2.5})");
}

TEST(JsonTest, ReadsALargeObjectInReasonableTime) {
  std::string text = "{\"a\": 0";
  for (int i = 0; i < 200'000; ++i) text += ", \"" + std::to_string(i) + "\": " + std::to_string(i);
  const auto json = ParseLargeJsonObject(text + "}");
  ASSERT_TRUE(json.ok()) << json.status();
  EXPECT_EQ(json->size(), 200'001);
  EXPECT_THAT(std::string(ParseLargeJsonObject(text + ", \"7\": 7}").status().message()),
              HasSubstr("'7' occurs twice"));
}

TEST(JsonTest, SaysWhatIsWrong) {
  const struct {
    std::string text, problem;
  } rows[] = {
      {"", "it is not JSON: line 1, column 1: "},
      {"{\"a\": 5,\n}", "it is not JSON: line 2, column 1: "},
      {"{\"a\": 1e999}", "it is not JSON: number overflow parsing '1e999'"},
      {"{\"a\xff\": 1}", "it is not JSON: line 1, column 4: "},
      {"[1]", "it is not a JSON object"},
      {"{\"a\": {\"b\": 1, \"b\": 2}}", "'b' occurs twice"},
      {"{\"a\": " + std::string(1'000'000, '['), "it is nested too deeply"},
  };
  for (const auto& row : rows) {
    EXPECT_THAT(std::string(ParseJsonObject(row.text).status().message()), HasSubstr(row.problem));
  }
}

TEST(JsonTest, WritesALine) {
  EXPECT_EQ(JsonLine({{"b", 1}, {"a", "x\n\xff\"y\""}}), "{\"b\":1,\"a\":\"x\\n\xEF\xBF\xBD\\\"y\\\"\"}");
  EXPECT_EQ(JsonLine("x"), "\"x\"");
}

TEST(JsonTest, WritesNumbersWithSevenDigits) {
  EXPECT_EQ(JsonArray({}), "[]");
  EXPECT_EQ(JsonArray({0.25f, -1e-5f, 1.0f / 3}), "[0.25,-1e-05,0.3333333]");
}

}  // namespace
}  // namespace weft
