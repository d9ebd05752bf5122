#include "weft/base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
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

// Safetensors headers have an object for each tensor.
TEST(JsonTest, ReadsManyObjectsInReasonableTime) {
  std::string text = "{\"a\": []";
  for (int i = 0; i < 100'000; ++i) text += ", \"" + std::to_string(i) + "\": {\"x\": [1]}";
  const auto begin = std::chrono::steady_clock::now();
  const auto json = ParseLargeJsonObject(text + "}");
  ASSERT_TRUE(json.ok()) << json.status();
  EXPECT_EQ(json->size(), 100'001);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));  // 48 s if the time is quadratic
  EXPECT_THAT(std::string(ParseJsonObject(text + "}").status().message()), HasSubstr("more than 100000 keys"));
}

TEST(JsonTest, MayBeNestedSixteenLevelsDeep) {
  const auto nested = [](int levels) {
    return "{\"a\":" + std::string(levels, '[') + "1" + std::string(levels, ']') + "}";
  };
  EXPECT_TRUE(ParseJsonObject(nested(15)).ok());
  EXPECT_FALSE(ParseJsonObject(nested(16)).ok());
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
      {std::string("{\"a\": 1}\0garbage", 16), "it is not JSON: byte 9 is NUL"},
      {std::string("{\"a\": 1}\0", 9), "it is not JSON: byte 9 is NUL"},
      {"{\"a\": {\"b\": 1, \"b\": 2}}", "'b' occurs twice"},
      {"{\"a\": " + std::string(1'000'000, '['), "it is nested too deeply"},
  };
  for (const auto& row : rows) {
    EXPECT_THAT(std::string(ParseJsonObject(row.text).status().message()), HasSubstr(row.problem));
  }
}

// Python's json.loads refuses what follows a NUL, too.
TEST(JsonTest, ParsesAnyValue) {
  EXPECT_EQ(ParseJson("[1, 2]"), nlohmann::json({1, 2}));
  EXPECT_TRUE(ParseJson("[1, 2").is_discarded());
  EXPECT_TRUE(ParseJson(absl::string_view("[1]\0garbage", 11)).is_discarded());
}

TEST(JsonTest, WholeNumbersDoNotWrap) {
  EXPECT_EQ(WholeNumber(ParseJson("9223372036854775807")), int64_t{9223372036854775807});
  EXPECT_EQ(WholeNumber(ParseJson("-9223372036854775808")), -9223372036854775807 - 1);
  EXPECT_EQ(WholeNumber(ParseJson("9223372036854775808")), std::nullopt);
  EXPECT_EQ(WholeNumber(ParseJson("18446744073709551615")), std::nullopt);
  EXPECT_EQ(WholeNumber(ParseJson("2.0")), std::nullopt);
  EXPECT_EQ(TokenId(ParseJson("2147483647")), 2147483647);
  EXPECT_EQ(TokenId(ParseJson("-1")), -1);
  for (const char* text : {"2147483648", "4294967303", "-2147483649", "18446744073709551615", "7.0", "true"}) {
    EXPECT_EQ(TokenId(ParseJson(text)), std::nullopt) << text;
  }
}

TEST(JsonTest, AnEndlessFileIsRefusedSoon) {
  const absl::Status status = ReadJsonFile("/dev/zero").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "/dev/zero: it has more than 64000000 bytes, the maximum for its kind of file");
}

TEST(JsonTest, WritesALine) {
  EXPECT_EQ(JsonLine({{"b", 1}, {"a", "x\n\xff\"y\""}}), "{\"b\":1,\"a\":\"x\\n\xEF\xBF\xBD\\\"y\\\"\"}");
  EXPECT_EQ(JsonLine("x"), "\"x\"");
}

TEST(JsonTest, WritesNumbersWithSevenDigits) {
  EXPECT_EQ(JsonArray({}), "[]");
  EXPECT_EQ(JsonArray({0.25f, -1e-5f, 1.0f / 3}), "[0.25,-1e-05,0.3333333]");
  constexpr float kInf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(JsonArray({kInf, 1, -kInf, std::nanf("")}), "[null,1,null,null]") << "JSON has no other way to write them";
}

}  // namespace
}  // namespace weft
