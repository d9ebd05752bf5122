// Loads the tokenizer of llama2.c from files that the tests write.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "absl/strings/str_format.h"
#include "weft/base/file.h"
#include "weft/text/tokenizers/load_tokenizer.h"
#include "weft/text/utf8.h"

namespace weft {
namespace {

std::string Bytes(const auto& value) { return std::string(reinterpret_cast<const char*>(&value), sizeof value); }

std::string Record(float score, const std::string& text) {
  return Bytes(score) + Bytes(static_cast<int32_t>(text.size())) + text;
}

absl::StatusOr<std::unique_ptr<Tokenizer>> Load(const std::string& file) {
  const std::string path = testing::TempDir() + "/tokenizer.bin";
  EXPECT_TRUE(WriteFile(path, {file}).ok());
  return LoadTokenizer(path);
}

// Returns the error of loading `file`, without the path at its beginning.
std::string Error(const std::string& file) {
  return std::string(Load(file).status().message().substr((testing::TempDir() + "/tokenizer.bin: ").size()));
}

using Pieces = std::vector<std::pair<std::string, float>>;  // with their scores

std::string File(const Pieces& pieces) {
  std::string file = Bytes(int32_t{6});  // the length of the longest piece
  for (const auto& [text, score] : pieces) file += Record(score, text);
  return file;
}

Pieces SmallPieces() {
  Pieces pieces = {{"<unk>", 0}, {"<s>", 0}, {"</s>", 0}};
  for (int byte = 0; byte < 256; ++byte) pieces.push_back({absl::StrFormat("<0x%02X>", byte), 0});
  // 259 .. 263, then 264 ..
  for (const char* text : {" ", "a", "b", "c", "é"}) pieces.push_back({text, -100});
  for (const auto& [text, score] : {std::pair(" a", -1.f), {"bc", -2.f}, {" ab", -3.f}, {"abc", -2.5f}, {"aa", -4.f}}) {
    pieces.push_back({text, score});
  }
  // 269 ..
  for (const char* text : {"x", "y", "z", "<", "s", ">"}) pieces.push_back({text, -100});
  for (const auto& [text, score] : {std::pair("xy", -9.f), {"yz", -8.f}, {"s>", -7.f}}) pieces.push_back({text, score});
  return pieces;
}

std::unique_ptr<Tokenizer> Small() {
  auto tokenizer = Load(File(SmallPieces()));
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return *std::move(tokenizer);
}

TEST(Llama2cTest, TheBestScoreMergesFirst) {
  const auto tokenizer = Small();
  const struct {
    std::string text;
    std::vector<int32_t> ids;
  } rows[] = {
      {"", {}},
      {"a", {264}},
      {" ", {259, 259}},
      {"abc", {264, 265}},        // " a" and "bc"; " abc" is no piece
      {"babc", {259, 261, 267}},  // "bc" first, then "abc"
      {"aab", {264, 260, 261}},
      {"caaa", {259, 262, 268, 260}},  // of equal scores, the leftmost pair merges first
      {"é日", {259, 263, 3 + 0xE6, 3 + 0x97, 3 + 0xA5}},
      {"\n", {259, 3 + 0x0A}},
      {"xyz", {259, 269, 276}},  // "yz" has the better score, though "xy" comes first
      {"<s>", {259, 272, 277}},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(*tokenizer->Encode(row.text, /*special=*/false), row.ids) << row.text;
    EXPECT_EQ(*tokenizer->Decode(row.ids), row.text);
  }
  EXPECT_EQ(tokenizer->Encode("a\xFF").status().message(), "not UTF-8 at byte 1 (0xFF)");
}

TEST(Llama2cTest, BeginsATextWithItsToken) {
  const auto tokenizer = Small();
  EXPECT_EQ(tokenizer->special_tokens().unknown, 0);
  EXPECT_EQ(tokenizer->special_tokens().begin, 1);
  EXPECT_EQ(tokenizer->special_tokens().end, 2);
  EXPECT_EQ(tokenizer->Wrap({264}).ids, (std::vector<int32_t>{1, 264}));
  EXPECT_EQ(*tokenizer->Decode({1, 264, 264, 2, 1, 264}), "a a a");
  EXPECT_EQ(*tokenizer->DecodeWithSpecial({1, 264, 264, 2, 1, 264}), "<s>a a</s><s>a");
  EXPECT_EQ(*tokenizer->Encode("<s>a"), (std::vector<int32_t>{1, 264}));
}

TEST(Llama2cTest, GivesBackEveryText) {
  const auto tokenizer = Small();
  std::mt19937 random(11);
  for (int round = 0; round < 500; ++round) {
    std::string text;
    for (uint32_t i = random() % 60; i > 0; --i) {
      const int32_t c = static_cast<int32_t>(random() % (random() % 3 == 0 ? kCodePoints : 0x100));
      if (c < 0xD800 || c > 0xDFFF) text += random() % 2 == 0 ? std::string(1, "abc <"[random() % 5]) : ToUtf8(c);
    }
    const auto ids = tokenizer->Encode(text);
    ASSERT_TRUE(ids.ok()) << ids.status();
    EXPECT_EQ(*tokenizer->Decode(*ids), text);
    EXPECT_EQ(*tokenizer->Decode(tokenizer->Wrap(*ids).ids), text);
  }
}

TEST(Llama2cTest, WithoutBytesACharacterIsUnknown) {
  const auto tokenizer = Load(File({{"<unk>", 0}, {" ", -1}, {"a", -2}}));
  ASSERT_TRUE(tokenizer.ok());
  EXPECT_EQ(*(*tokenizer)->Encode("aé"), (std::vector<int32_t>{1, 2, 0}));
  EXPECT_EQ(*(*tokenizer)->Decode({1, 2, 0}), "a<unk>");
  const auto without = Load(File({{" ", -1}, {"a", -2}}));
  EXPECT_EQ((*without)->Encode("aé").status().message(),
            "at byte 0: the vocabulary has neither 'é' nor its bytes nor an unknown token");
}

TEST(Llama2cTest, RefusesPiecesThatCannotBeUsed) {
  EXPECT_EQ(Error(File({{"a", 0}, {"b", 0}, {"a", 1}})), "token 'a' occurs twice, with ids 0 and 2");
  EXPECT_EQ(Error(File({{"a", NAN}})), "the score of 'a' is not a number");
}

TEST(Llama2cFileTest, ReadsAndRefuses) {
  const std::string header = File({}), file = File({{"<unk>", 0}, {"\n<s>\n", 0}, {"ab", -1}});
  const auto tokenizer = Load(file);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  ASSERT_EQ((*tokenizer)->vocabulary_size(), 3);
  EXPECT_EQ((*tokenizer)->TokenText(1), "<s>");
  EXPECT_EQ((*tokenizer)->special_tokens().begin, 1);
  EXPECT_EQ((*tokenizer)->TokenText(2), "ab");
  const struct {
    std::string file, message;
  } rows[] = {
      {"", "the file has only 0 bytes"},
      {"abc", "the file has only 3 bytes"},
      {header, "the file has no pieces"},
      {file.substr(0, file.size() - 1), "piece 2, at byte 30: the file ends within its 2 bytes"},
      {file.substr(0, file.size() - 3), "piece 2, at byte 30: the file ends there"},
      {header + Record(0, ""), "piece 0, at byte 4: it has 0 bytes, but the file says that a piece has 1 to 6"},
      {header + Record(0, "1234567"), "piece 0, at byte 4: it has 7 bytes, but the file says that a piece has 1 to 6"},
  };
  for (const auto& row : rows) EXPECT_EQ(Error(row.file), row.message);
}

}  // namespace
}  // namespace weft
