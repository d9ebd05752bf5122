#include "weft/text/utf8.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

TEST(Utf8Test, ReadsCharactersOfEveryLength) {
  const std::string text = "aé€😀";
  std::vector<int32_t> found;
  for (size_t i = 0; i < text.size(); i += CharacterAt(text, i).bytes) found.push_back(CharacterAt(text, i).code_point);
  EXPECT_EQ(found, (std::vector<int32_t>{'a', 0xE9, 0x20AC, 0x1F600}));
  std::string again;
  for (int32_t code_point : found) again += ToUtf8(code_point);
  EXPECT_EQ(again, text);
}

TEST(Utf8Test, NamesTheFirstBadByte) {
  EXPECT_TRUE(CheckUtf8("").ok());
  EXPECT_TRUE(CheckUtf8("naïve").ok());
  const struct {
    std::string text, error;
  } kRows[] = {
      {"caf\xE9 latin", "not UTF-8 at byte 3 (0xE9)"},     {"\xFF\xFE", "not UTF-8 at byte 0 (0xFF)"},
      {"ab\xE2\x82", "not UTF-8 at byte 2 (0xE2)"},         // truncated
      {"a\xC0\x80", "not UTF-8 at byte 1 (0xC0)"},          // an overlong encoding
      {"\xED\xA0\x80", "not UTF-8 at byte 0 (0xED)"},       // a surrogate
      {"x\xF4\x90\x80\x80", "not UTF-8 at byte 1 (0xF4)"},  // above U+10FFFF
  };
  for (const auto& row : kRows) EXPECT_EQ(CheckUtf8(row.text).message(), row.error);
}

// The texts are those of Python's bytes.decode(errors="replace").
TEST(Utf8Test, ReplacesBytesThatAreNotUtf8) {
  const struct {
    std::string bytes, valid, rest;  // `rest`: the incomplete character at the end
  } rows[] = {
      {"", "", ""},
      {"na\u00EFve \u20AC", "na\u00EFve \u20AC", ""},
      {"\x86\xE3\x82M", "\uFFFD\uFFFDM", ""},
      {"a\xE3\x82", "a\uFFFD", "\xE3\x82"},
      {"\xF0\x9F\x98", "\uFFFD", "\xF0\x9F\x98"},
      {"\xF0\x9F\xE3\x82\xC3", "\uFFFD\uFFFD\uFFFD", "\xC3"},
      {"\xC0\x80", "\uFFFD\uFFFD", ""},                      // overlong
      {"\xE0\x80\x80", "\uFFFD\uFFFD\uFFFD", ""},            // overlong
      {"\xED\xA0\x80", "\uFFFD\uFFFD\uFFFD", ""},            // a surrogate
      {"\xF4\x90\x80\x80", "\uFFFD\uFFFD\uFFFD\uFFFD", ""},  // above U+10FFFF
      {"\xF4\x8F\xBF", "\uFFFD", "\xF4\x8F\xBF"},
      {"\xF0\x80", "\uFFFD\uFFFD", ""},
      {"\xED\x9F", "\uFFFD", "\xED\x9F"},
      {"\xEF\xBF\xFF", "\uFFFD\uFFFD", ""},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(ReplaceInvalidUtf8(row.bytes), row.valid);
    std::string rest;
    const std::string valid = ReplaceInvalidUtf8(row.bytes, &rest);
    EXPECT_EQ(rest, row.rest);
    EXPECT_EQ(valid + (rest.empty() ? "" : "\uFFFD"), row.valid);
  }
}

TEST(Utf8Test, DescribesCharacters) {
  EXPECT_EQ(Describe('a'), "U+0061 'a'");
  EXPECT_EQ(Describe(0xE9), "U+00E9 'é'");
  EXPECT_EQ(Describe('\n'), "U+000A");
  EXPECT_EQ(Describe(0x301), "U+0301");
  EXPECT_EQ(Describe(0x1F600), "U+1F600 '😀'");
}

TEST(Utf8Test, CountsCharactersAndFindsWhereTheyBegin) {
  const std::string text = "aé日😀";
  EXPECT_EQ(CountCharacters(text), 4);
  EXPECT_EQ(CountCharacters(""), 0);
  const size_t begins[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10};
  for (size_t at = 0; at <= text.size(); ++at) EXPECT_EQ(CharacterBegin(text, at), begins[at]) << at;
  EXPECT_EQ(CharacterBegin("\x80\x80", 1), 0);
}

TEST(Utf8Test, ForEachCharacterTakesBytesThatAreNotUtf8OneByOne) {
  std::vector<std::pair<int32_t, std::string>> characters;
  ForEachCharacter("aé\xE2\x82🙂", [&](int32_t c, absl::string_view bytes) { characters.emplace_back(c, bytes); });
  const std::vector<std::pair<int32_t, std::string>> wanted = {
      {'a', "a"}, {0xE9, "é"}, {-1, "\xE2"}, {-1, "\x82"}, {0x1F642, "🙂"}};
  EXPECT_EQ(characters, wanted);
}

}  // namespace
}  // namespace weft
