#include "weft/text/tokenizers/text_stream.h"

#include <memory>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/base/file.h"
#include "weft/text/tokenizers/bpe.h"
#include "weft/text/tokenizers/character_tokenizer.h"
#include "weft/text/tokenizers/load_tokenizer.h"
#include "weft/text/utf8.h"

namespace weft {
namespace {

using ::testing::ElementsAre;

// Returns the output of the stream after each byte of `text`, and at the end.
std::vector<std::string> Parts(const std::string& text, const std::string& stop = "") {
  const ByteTokenizer tokenizer;
  TextStream stream(tokenizer, {}, {stop});
  std::vector<std::string> parts;
  for (const char byte : text) parts.push_back(*stream.Add(static_cast<unsigned char>(byte)));
  parts.push_back(stream.Finish());
  return parts;
}

TEST(TextStreamTest, CharactersComeWhole) {
  EXPECT_THAT(Parts("a\xC3\xA9z"), ElementsAre("a", "", "\xC3\xA9", "z", ""));
  EXPECT_THAT(Parts("\xF0\x9F\x98\x80"), ElementsAre("", "", "", "\xF0\x9F\x98\x80", ""));
}

TEST(TextStreamTest, WhatIsNoUtf8IsReplaced) {
  const std::string replacement = "\xEF\xBF\xBD";
  EXPECT_THAT(Parts("\xFFz"), ElementsAre(replacement, "z", ""));
  EXPECT_THAT(Parts("\xC3z"), ElementsAre("", replacement + "z", ""));
  EXPECT_THAT(Parts("z\xE2\x82"), ElementsAre("z", "", "", replacement));
  EXPECT_THAT(Parts("\x86\xE3\x82M"), ElementsAre(replacement, "", "", replacement + "M", ""));
}

// Bytes that often begin characters arrive one by one, or several in a token.
TEST(TextStreamTest, PartsAreTheWholeTextAtAllCuts) {
  std::mt19937 random(5);
  constexpr absl::string_view kBytes = "aM \x80\x86\x90\x9F\xA0\xBF\xC0\xC3\xE0\xE3\xED\xEF\xF0\xF4\xF5\xFF";
  BpeModel model;
  for (int byte = 0; byte < 256; ++byte) ASSERT_TRUE(model.vocabulary.Add({static_cast<char>(byte)}).ok());
  for (int i = 0; i < 300; ++i) {
    std::string token;
    for (uint32_t size = 2 + random() % 4; size > 0; --size) token += kBytes[random() % kBytes.size()];
    model.vocabulary.AddOrMove(token);
  }
  const auto tokenizer = Bpe::Create(model);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  for (int round = 0; round < 2000; ++round) {
    std::vector<int32_t> ids(random() % 12);
    for (int32_t& id : ids) {
      const uint32_t one = static_cast<uint8_t>(kBytes[random() % kBytes.size()]);
      const uint32_t several = random() % static_cast<uint32_t>(model.vocabulary.size());
      id = static_cast<int32_t>(random() % 2 == 0 ? one : several);
    }
    TextStream stream(**tokenizer, {});
    std::string text;
    for (const int32_t id : ids) text += *stream.Add(id);
    EXPECT_EQ(text + stream.Finish(), ReplaceInvalidUtf8(*(*tokenizer)->Decode(ids)));
  }
}

TEST(TextStreamTest, EndsBeforeTheStop) {
  EXPECT_THAT(Parts("abcd", "bc"), ElementsAre("a", "", "", "", ""));
  EXPECT_THAT(Parts("abbd", "bc"), ElementsAre("a", "", "b", "bd", ""));
  EXPECT_THAT(Parts("ab", "bc"), ElementsAre("a", "", "b"));
  const ByteTokenizer tokenizer;
  TextStream stream(tokenizer, {}, {"a"});
  EXPECT_EQ(*stream.Add('a'), "");
  EXPECT_TRUE(stream.stopped());
}

TEST(TextStreamTest, EndsBeforeTheFirstOfSeveralStops) {
  const ByteTokenizer tokenizer;
  const auto text = [&](const std::string& bytes) {
    TextStream stream(tokenizer, {}, {"", "xyz", "bc", "zz"});
    std::string parts;
    for (const char byte : bytes) parts += *stream.Add(static_cast<unsigned char>(byte));
    return parts + stream.Finish();
  };
  EXPECT_EQ(text("abxyzbc"), "ab");
  EXPECT_EQ(text("axybcxyz"), "axy");
  EXPECT_EQ(text("axyz"), "a");
  EXPECT_EQ(text("axyxyb"), "axyxyb");
}

// Returns a tokenizer of llama2.c with six pieces.
std::unique_ptr<Tokenizer> Llama2c() {
  const auto bytes = [](const auto& value) { return std::string(reinterpret_cast<const char*>(&value), sizeof value); };
  std::string file = bytes(int32_t{5});  // the length of the longest piece
  float score = 0;
  for (const std::string piece : {"<unk>", "<s>", "</s>", " once", " upon", "s"}) {
    file += bytes(score--) + bytes(static_cast<int32_t>(piece.size())) + piece;
  }
  const std::string path = testing::TempDir() + "/tokenizer.bin";
  EXPECT_TRUE(WriteFile(path, {file}).ok());
  auto tokenizer = LoadTokenizer(path);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return *std::move(tokenizer);
}

// A special token is never shown, but a stop may have its text.
TEST(TextStreamTest, StopsAtTheTextsOfSpecialTokens) {
  const std::unique_ptr<Tokenizer> tokenizer = Llama2c();
  const struct {
    std::vector<std::string> stops;
    std::vector<int32_t> tokens;
    std::string text;
    bool stops_there;
  } rows[] = {
      {{}, {3, 2, 4}, "once upon", false},
      {{"</s>"}, {3, 2, 4}, "once", true},
      {{"</s> upon"}, {3, 2, 4}, "once", true},
      {{"</s> once"}, {3, 2, 4}, "once upon", false},
      {{"s</s><s>"}, {3, 5, 2, 1, 4}, "once", true},
      {{"s</s><s>"}, {3, 5, 2, 4}, "onces upon", false},
      {{">x"}, {3, 2}, "once", false},
  };
  for (const auto& [stops, tokens, text, stops_there] : rows) {
    TextStream stream(*tokenizer, {1}, stops);
    std::string got;
    for (const int32_t token : tokens) got += *stream.Add(token);
    EXPECT_EQ(got + stream.Finish(), text);
    EXPECT_EQ(stream.stopped(), stops_there);
  }
}

// The tokenizer drops a space before a word at the beginning of a text only.
TEST(TextStreamTest, SpacesAreThoseOfTheWholeText) {
  const std::unique_ptr<Tokenizer> tokenizer = Llama2c();
  TextStream from_the_beginning(*tokenizer, {1}), continued(*tokenizer, {1, 3});
  for (const auto& [token, text] : {std::pair{3, "once"}, {4, " upon"}, {5, "s"}, {3, " once"}}) {
    EXPECT_EQ(*from_the_beginning.Add(token), text);
  }
  EXPECT_EQ(*continued.Add(4), " upon");
  EXPECT_FALSE(continued.Add(6).ok());
  // A special token has no text, and changes no text behind it.
  TextStream interrupted(*tokenizer, {3, 2}, {"s</s>"});
  for (const auto& [token, text] : {std::pair{2, ""}, {4, " upon"}, {1, ""}, {5, ""}, {2, ""}, {3, ""}}) {
    EXPECT_EQ(*interrupted.Add(token), text);
  }
  EXPECT_TRUE(interrupted.stopped());  // at the stop string, which ends with a special token
}

}  // namespace
}  // namespace weft
