#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "weft/text/tokenizers/pipeline_steps.h"

namespace weft {
namespace {

std::vector<std::string> Words(const std::string& text) {
  std::vector<std::string> words;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = Gpt2WordEnd(text, begin);
    EXPECT_GT(end, begin) << text;
    words.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return words;
}

TEST(Gpt2WordsTest, CutsAsTheRegularExpressionDoes) {
  const struct {
    std::string text;
    std::vector<std::string> words;
  } rows[] = {
      {"", {}},
      {"Hello world", {"Hello", " world"}},
      {"don't we'll they've I'm he'd it's we're",
       {"don", "'t", " we", "'ll", " they", "'ve", " I", "'m", " he", "'d", " it", "'s", " we", "'re"}},
      {"DON'T", {"DON", "'", "T"}},                // only lowercase contractions count
      {"'tis 'sing", {"'t", "is", " '", "sing"}},  // after a space no contraction begins
      {"''s", {"''", "s"}},
      {"abc123", {"abc", "123"}},
      {"x²½٣", {"x", "²½٣"}},  // No, No, Nd
      {"a  b", {"a", " ", " b"}},
      {"a   b", {"a", "  ", " b"}},
      {"a\n\nb", {"a", "\n", "\n", "b"}},
      {"a \nb", {"a", " ", "\n", "b"}},
      {"a\n b", {"a", "\n", " b"}},
      {"a  ", {"a", "  "}},
      {" ", {" "}},
      {" \t\n", {" \t\n"}},
      {"\u00A0x", {"\u00A0", "x"}},  // a space other than ' ' is a separate word
      {" \u3000 x", {" \u3000", " x"}},
      {"Café naïve", {"Café", " naïve"}},
      {"e\u0301t", {"e", "\u0301", "t"}},  // a combining accent is no letter
      {"日本語!?", {"日本語", "!?"}},
      {" 🙂🙂a", {" 🙂🙂", "a"}},
      {"--x == y", {"--", "x", " ==", " y"}},
      {std::string("a\0b", 3), {"a", std::string("\0", 1), "b"}},
  };
  for (const auto& row : rows) EXPECT_EQ(Words(row.text), row.words) << row.text;
}

}  // namespace
}  // namespace weft
