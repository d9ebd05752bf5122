// Expected matches are those of Oniguruma, as Split of tokenizers 0.23.3 shows them.
#include "weft/text/regular_expression.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace weft {
namespace {

std::vector<std::string> Matches(const std::string& pattern, const std::string& text) {
  const auto expression = RegularExpression::Create(pattern);
  EXPECT_TRUE(expression.ok()) << expression.status();
  std::vector<std::string> matches;
  if (!expression.ok()) return matches;
  const absl::Status status = expression->ForEachMatch(
      text, [&](size_t begin, size_t end) { matches.push_back(text.substr(begin, end - begin)); });
  EXPECT_TRUE(status.ok()) << status;
  return matches;
}

TEST(RegularExpressionTest, MatchesAsOnigurumaDoes) {
  const struct {
    std::string pattern, text;
    std::vector<std::string> matches;
  } rows[] = {
      {R"(\p{N}{1,3})", "12345 x²½", {"123", "45", "²½"}},
      {R"((?i:'s|'t)|\p{L}+)", "It'S don'ſ", {"It", "'S", "don", "'ſ"}},
      {R"(\s+(?!\S)|\s+)", "a  \u3000b\u180E ", {"  ", "\u3000", " "}},  // U+180E is no space
      {R"([^\s]+)", "a\u180Eb c", {"a\u180Eb", "c"}},
      {R"(\S)", "\u180E", {"\u180E"}},
      {R"(\w+)", "a\u0301_9-\u24B6", {"a\u0301_9", "\u24B6"}},
      {R"(\h+)", "xFF0g ", {"FF0"}},
      {R"([\h-]+)", "x-F", {"-F"}},
      {R"([^(\s|[.,!])]+)", "ab.c (d", {"ab", "c", "d"}},  // a class in a class, as BLOOM has it
      {R"([]a]+)", "b]a", {"]a"}},
      {R"([[:digit:]a]+)", "x1a", {"1a"}},
      {R"(\p{Han}+)", "a\u3001\u4E00", {"\u4E00"}},  // the script alone, without its common punctuation
      {R"(\P{Han}\p{^Han})", "ab", {"ab"}},
      {R"(.+$)", "ab\ncd\n", {"ab", "cd"}},
      {R"(^b)", "a\nb", {"b"}},
      {R"(a*)", "baac", {"", "aa", ""}},  // no empty match directly behind a match
      {R"(x{,2}y)", "xxxy", {"xxy"}},
      {R"(\x{e9}\\\[)", "é\\[", {"é\\["}},
      {R"([^\r\n\p{L}]?+\p{L}++)", " ab", {" ab"}},
  };
  for (const auto& row : rows) EXPECT_EQ(Matches(row.pattern, row.text), row.matches) << row.pattern;
  std::string all;
  for (char c = ' '; c < 127; ++c) all += c;
  const auto literal = RegularExpression::Literal(all + "é");
  ASSERT_TRUE(literal.ok()) << literal.status();
  int count = 0;
  EXPECT_TRUE(literal->ForEachMatch("x" + all + "é", [&](size_t begin, size_t) { count += begin == 1; }).ok());
  EXPECT_EQ(count, 1);
}

TEST(RegularExpressionTest, RefusesWhatItCannotMatch) {
  const std::pair<const char*, const char*> rows[] = {
      {"a(", "the regular expression a(: at byte 2 of a(: missing closing parenthesis"},
      {"\\", "the regular expression \\: at byte 1 of \\: \\ at end of pattern"},
      {"[a&&b]", "the regular expression [a&&b]: byte 2: the intersection of classes is not supported"},
      {"[a[^b]]", "the regular expression [a[^b]]: byte 2: a negated class in a class is not supported"},
      {"[\\W]", "the regular expression [\\W]: byte 1: \\W in a class is not supported"},
      {"a{1,2}+", "the regular expression a{1,2}+: byte 5: '+' after {n,m} is not supported"},
      {"(?m:a)", "the regular expression (?m:a): byte 0: a flag other than 'i' is not supported"},
      {"(*UTF)a", "the regular expression (*UTF)a: byte 0: '(*' is not supported"},
      {"\xFF", "the regular expression \xFF: not UTF-8 at byte 0 (0xFF)"},
  };
  for (const auto& [pattern, message] : rows) {
    EXPECT_EQ(RegularExpression::Create(pattern).status().message(), message);
  }
  EXPECT_FALSE(RegularExpression::Create(std::string(100'000, 'a')).ok());
}

TEST(RegularExpressionTest, EndsAMatchThatBacktracksWithoutEnd) {
  const auto expression = RegularExpression::Create("(a|a)*[bc]");
  ASSERT_TRUE(expression.ok());
  const absl::Status status = expression->ForEachMatch(std::string(100, 'a'), [](size_t, size_t) {});
  EXPECT_EQ(status.message(), "the regular expression (a|a)*[bc]: from byte 0: match limit exceeded");
}

}  // namespace
}  // namespace weft
