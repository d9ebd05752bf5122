#include "weft/text/scored_bpe.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "absl/strings/str_format.h"
#include "weft/text/utf8.h"

namespace weft {
namespace {

std::vector<ScoredPiece> SmallPieces() {
  std::vector<ScoredPiece> pieces = {{"<unk>", 0}, {"<s>", 0}, {"</s>", 0}};
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

std::unique_ptr<ScoredBpe> Small() {
  auto tokenizer = ScoredBpe::Create(SmallPieces());
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return *std::move(tokenizer);
}

TEST(ScoredBpeTest, TheBestScoreMergesFirst) {
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

TEST(ScoredBpeTest, BeginsATextWithItsToken) {
  const auto tokenizer = Small();
  EXPECT_EQ(tokenizer->special_tokens().unknown, 0);
  EXPECT_EQ(tokenizer->special_tokens().begin, 1);
  EXPECT_EQ(tokenizer->special_tokens().end, 2);
  EXPECT_EQ(tokenizer->Wrap({264}).ids, (std::vector<int32_t>{1, 264}));
  EXPECT_EQ(*tokenizer->Decode({1, 264, 264, 2, 1, 264}), "a a a");
  EXPECT_EQ(*tokenizer->DecodeWithSpecial({1, 264, 264, 2, 1, 264}), "<s>a a</s><s>a");
  EXPECT_EQ(*tokenizer->Encode("<s>a"), (std::vector<int32_t>{1, 264}));
}

TEST(ScoredBpeTest, GivesBackEveryText) {
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

TEST(ScoredBpeTest, WithoutBytesACharacterIsUnknown) {
  const auto tokenizer = ScoredBpe::Create({{"<unk>", 0}, {" ", -1}, {"a", -2}});
  ASSERT_TRUE(tokenizer.ok());
  EXPECT_EQ(*(*tokenizer)->Encode("aé"), (std::vector<int32_t>{1, 2, 0}));
  EXPECT_EQ(*(*tokenizer)->Decode({1, 2, 0}), "a<unk>");
  const auto without = ScoredBpe::Create({{" ", -1}, {"a", -2}});
  EXPECT_EQ((*without)->Encode("aé").status().message(),
            "at byte 1: the vocabulary has neither 'é' nor its bytes nor an unknown token");
}

TEST(ScoredBpeTest, RefusesPiecesThatCannotBeUsed) {
  EXPECT_EQ(ScoredBpe::Create({{"a", 0}, {"b", 0}, {"a", 1}}).status().message(),
            "token 'a' occurs twice, with ids 0 and 2");
  EXPECT_EQ(ScoredBpe::Create({{"a", NAN}}).status().message(), "the score of 'a' is not a number");
}

std::string Bytes(const auto& value) { return std::string(reinterpret_cast<const char*>(&value), sizeof value); }

std::string Record(float score, const std::string& text) {
  return Bytes(score) + Bytes(static_cast<int32_t>(text.size())) + text;
}

TEST(Llama2cFileTest, ReadsAndRefuses) {
  const std::string header = Bytes(int32_t{6}),
                    file = header + Record(0, "<unk>") + Record(0, "\n<s>\n") + Record(-1, "ab");
  const auto pieces = ReadLlama2cFile(file);
  ASSERT_TRUE(pieces.ok()) << pieces.status();
  ASSERT_EQ(pieces->size(), 3);
  EXPECT_EQ((*pieces)[1].text, "<s>");
  EXPECT_EQ((*pieces)[2].text, "ab");
  EXPECT_EQ((*pieces)[2].score, -1);
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
  for (const auto& row : rows) EXPECT_EQ(ReadLlama2cFile(row.file).status().message(), row.message);
}

}  // namespace
}  // namespace weft
