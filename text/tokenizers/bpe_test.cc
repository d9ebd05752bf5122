#include "weft/text/tokenizers/bpe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "weft/text/utf8.h"

namespace weft {
namespace {

TEST(ByteAlphabetTest, WritesEveryByteAsOneCharacter) {
  EXPECT_EQ(ToByteAlphabet(" the\n"), "ĠtheĊ");
  EXPECT_EQ(ToByteAlphabet(std::string("\0\x7F\xA0\xAD\xFF", 5)), "ĀġłŃÿ");
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  EXPECT_EQ(*FromByteAlphabet(ToByteAlphabet(all)), all);
  EXPECT_EQ(FromByteAlphabet("ab日").status().message(), "U+65E5 '日' stands for no byte");
  EXPECT_FALSE(FromByteAlphabet(" ").ok());
  EXPECT_FALSE(FromByteAlphabet("\xFF").ok());
}

// A vocabulary of all bytes, then the results of `merges`, then <|endoftext|>.
BpeModel SmallModel(std::vector<TokenPair> merges) {
  BpeModel model;
  for (int byte = 0; byte < 256; ++byte)
    EXPECT_TRUE(model.vocabulary.Add(std::string(1, static_cast<char>(byte))).ok());
  for (const auto& [left, right] : merges) EXPECT_TRUE(model.vocabulary.Add(left + right).ok());
  model.special = {{"<|endoftext|>", model.vocabulary.size()}};
  EXPECT_TRUE(model.vocabulary.Add("<|endoftext|>").ok());
  model.merges = std::move(merges);
  return model;
}

std::unique_ptr<Bpe> Small() {
  auto tokenizer = Bpe::Create(SmallModel({{" ", "l"}, {"o", "w"}, {" l", "ow"}, {"e", "r"}}));
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return *std::move(tokenizer);
}

TEST(BpeTest, MergesByRank) {
  const auto tokenizer = Small();
  EXPECT_EQ(tokenizer->vocabulary_size(), 261);
  EXPECT_EQ(*tokenizer->Encode(" lower low"), (std::vector<int32_t>{258, 259, 258}));
  EXPECT_EQ(*tokenizer->Encode("low"), (std::vector<int32_t>{'l', 257}));
  EXPECT_EQ(*tokenizer->Encode(""), std::vector<int32_t>());
  EXPECT_EQ(*tokenizer->Encode("é"), (std::vector<int32_t>{0xC3, 0xA9}));
  EXPECT_EQ(tokenizer->Encode("caf\xE9").status().message(), "not UTF-8 at byte 3 (0xE9)");
}

TEST(BpeTest, SpecialTokensAreThoseThatTheTextSpells) {
  const auto tokenizer = Small();
  EXPECT_EQ(tokenizer->special_tokens().begin, 260);
  EXPECT_EQ(tokenizer->special_tokens().end, 260);
  EXPECT_EQ(tokenizer->special_tokens().padding, std::nullopt);
  EXPECT_EQ(tokenizer->Encode("<|endoftext|>", /*special=*/false)->size(), 13);
  EXPECT_EQ(*tokenizer->Encode("ow<|endoftext|><|endoftext|> l"), (std::vector<int32_t>{257, 260, 260, 256}));
  EXPECT_EQ(*tokenizer->Encode(""), std::vector<int32_t>());
  EXPECT_EQ(*tokenizer->Encode("ow"), std::vector<int32_t>{257});
  EXPECT_EQ(tokenizer->Encode("<|endoftext|>\xFF").status().message(), "not UTF-8 at byte 13 (0xFF)");
  EXPECT_EQ(*tokenizer->Decode({260, 257, 260}), "ow");
  EXPECT_EQ(*tokenizer->DecodeWithSpecial({260, 257}), "<|endoftext|>ow");
  EXPECT_EQ(tokenizer->Decode({257, 261}).status().message(), "id 261, at position 1, is not in 0 .. 260");
  EXPECT_FALSE(tokenizer->DecodeWithSpecial({-1}).ok());
  EXPECT_EQ(tokenizer->Wrap({257}).ids, std::vector<int32_t>{257});
  EXPECT_FALSE(tokenizer->WrapPair({257}, {258}).ok());
}

TEST(BpeTest, TheLongestSpecialTokenIsRead) {
  BpeModel model = SmallModel({});
  for (const char* token : {"<a>", "<a><b>", "<b>"}) {
    model.special.push_back({token, model.vocabulary.size()});
    ASSERT_TRUE(model.vocabulary.Add(token).ok());
  }
  const auto tokenizer = Bpe::Create(model);
  EXPECT_EQ(*(*tokenizer)->Encode("<a>x<b><a><b>"), (std::vector<int32_t>{257, 'x', 259, 258}));
}

TEST(BpeTest, ManySpecialTokensTakeNoQuadraticTime) {
  BpeModel model = SmallModel({});
  model.special.push_back({"<never>", model.vocabulary.size()});
  ASSERT_TRUE(model.vocabulary.Add("<never>").ok());
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += "some<|endoftext|>";
  const auto tokenizer = Bpe::Create(model);
  EXPECT_EQ((*tokenizer)->Encode(text)->size(), 5 * 200'000);
}

TEST(BpeTest, OptionsOfThePublishedFiles) {
  BpeModel model = SmallModel({{" ", "l"}, {"o", "w"}, {" l", "ow"}});
  model.prefix_space = true;
  auto tokenizer = Bpe::Create(model);
  EXPECT_EQ(*(*tokenizer)->Encode("low"), std::vector<int32_t>{258});
  EXPECT_EQ(*(*tokenizer)->Encode(" low"), std::vector<int32_t>{258});
  EXPECT_EQ(*(*tokenizer)->Encode(""), std::vector<int32_t>());
  model = SmallModel({{"a", "b"}});
  ASSERT_TRUE(model.vocabulary.Add("xyz").ok());
  model.whole_words = true;
  tokenizer = Bpe::Create(model);
  EXPECT_EQ(*(*tokenizer)->Encode("xyz"), std::vector<int32_t>{258});
  EXPECT_EQ(*(*tokenizer)->Encode("xyzz"), (std::vector<int32_t>{'x', 'y', 'z', 'z'}));
  EXPECT_EQ(*(*tokenizer)->WithDropout(0.5, {})->Encode("xyz"), (std::vector<int32_t>{'x', 'y', 'z'}));
}

TEST(BpeTest, GivesBackEveryText) {
  const auto tokenizer = Small();
  std::mt19937 random(7);
  for (int round = 0; round < 500; ++round) {
    std::string text;
    for (uint32_t i = random() % 60; i > 0; --i) {
      const int32_t ends[] = {0x80, 0x80, 0x80, 0x800, 0x10000, kCodePoints};
      const int32_t c = static_cast<int32_t>(random() % static_cast<uint32_t>(ends[random() % 6]));
      if (c < 0xD800 || c > 0xDFFF) text += ToUtf8(c);
    }
    const auto ids = tokenizer->Encode(text);
    ASSERT_TRUE(ids.ok()) << ids.status();
    EXPECT_EQ(*tokenizer->DecodeWithSpecial(*ids), text);
    EXPECT_EQ(*tokenizer->Encode(text), *ids);
  }
}

TEST(BpeTest, DropoutLeavesMergesOut) {
  const absl::StatusOr<std::unique_ptr<Bpe>> tokenizer = Bpe::Create(SmallModel({{"a", "b"}, {"b", "c"}}));
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const auto dropped = (*tokenizer)->WithDropout(0.3, {.seed = 1});
  const auto same = (*tokenizer)->WithDropout(0.3, {.seed = 1}), other = (*tokenizer)->WithDropout(0.3, {.seed = 2});
  std::map<std::vector<int32_t>, int> counts;
  int differences = 0;
  constexpr int kWords = 10'000;
  for (int i = 0; i < kWords; ++i) {
    const std::vector<int32_t> ids = *dropped->Encode("abc");
    EXPECT_EQ(*dropped->Decode(ids), "abc");
    EXPECT_EQ(*same->Encode("abc"), ids);
    differences += *other->Encode("abc") != ids ? 1 : 0;
    ++counts[ids];
  }
  EXPECT_GT(differences, kWords / 10);
  // The first merge is kept with 0.7; if it is left out, the second one is kept with 0.7.
  EXPECT_EQ(counts.size(), 3);
  EXPECT_NEAR((counts[{256, 'c'}]), 0.7 * kWords, 200);
  EXPECT_NEAR((counts[{'a', 257}]), 0.3 * 0.7 * kWords, 200);
  EXPECT_NEAR((counts[{'a', 'b', 'c'}]), 0.3 * 0.3 * kWords, 150);
  EXPECT_EQ(*(*tokenizer)->Encode("abc"), (std::vector<int32_t>{256, 'c'}));
  int unequal = 0;  // texts in which the two words have different tokens
  for (int i = 0; i < 1000; ++i) {
    const std::vector<int32_t> ids = *dropped->Encode("abc.abc");
    const auto point = std::find(ids.begin(), ids.end(), '.');
    unequal += std::vector<int32_t>(ids.begin(), point) != std::vector<int32_t>(point + 1, ids.end()) ? 1 : 0;
  }
  EXPECT_NEAR(unequal, 1000 * (1 - 0.7 * 0.7 - 0.21 * 0.21 - 0.09 * 0.09), 100);
  EXPECT_EQ((*tokenizer)->WithDropout(0.3, {})->special_tokens().end, (*tokenizer)->special_tokens().end);
}

TEST(BpeTest, RefusesMergesThatTheVocabularyLacks) {
  const auto error = [](std::vector<TokenPair> merges) {
    BpeModel model = SmallModel({{"a", "b"}});
    model.merges = std::move(merges);
    return std::string(Bpe::Create(std::move(model)).status().message());
  };
  EXPECT_EQ(error({{"a", "b"}, {"b", "c"}}), "merge 1, 'b' 'c': 'bc' is not in the vocabulary");
  EXPECT_EQ(error({{"ab", "xy"}}), "merge 0, 'ab' 'xy': 'xy' is not in the vocabulary");
  EXPECT_EQ(error({{"a", "b"}, {"a", "b"}}), "merge 1, 'a' 'b': it occurs twice");
  BpeModel model;
  ASSERT_TRUE(model.vocabulary.Add("a").ok());
  const auto tokenizer = Bpe::Create(model);
  EXPECT_EQ((*tokenizer)->Encode("a ab").status().message(),
            "at byte 1: the word ' ab' has the byte 0x20, which is not in the vocabulary");
  model.prefix_space = true;
  ASSERT_TRUE(model.vocabulary.Add(" ").ok());
  EXPECT_EQ((*Bpe::Create(model))->Encode("a b").status().message(),
            "at byte 1: the word ' b' has the byte 0x62, which is not in the vocabulary");
}

}  // namespace
}  // namespace weft
