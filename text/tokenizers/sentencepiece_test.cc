// Loads models of SentencePiece that its trainer learns here.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "weft/base/file.h"
#include "weft/text/learn/learn_sentencepiece.h"
#include "weft/text/tokenizers/load_tokenizer.h"

namespace weft {
namespace {

std::string Path() { return testing::TempDir() + "/spiece.model"; }

absl::StatusOr<std::unique_ptr<Tokenizer>> Load(absl::string_view model) {
  EXPECT_TRUE(WriteFile(Path(), {model}).ok());
  return LoadTokenizer(Path());
}

std::unique_ptr<Tokenizer> Learn(const std::map<std::string, std::string>& options) {
  std::vector<std::string> lines;
  for (int i = 0; i < 200; ++i) lines.push_back("the cat number " + std::to_string(i) + " sat on the other mats");
  auto tokenizer = Load(LearnSentencePiece(lines, options).model);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return tokenizer.ok() ? *std::move(tokenizer) : nullptr;
}

TEST(SentencePieceTokenizerTest, BytePairsWithBytes) {
  const auto tokenizer = Learn({{"model_type", "bpe"}, {"byte_fallback", "true"}, {"vocab_size", "320"}});
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_EQ(tokenizer->vocabulary_size(), 320);
  EXPECT_EQ(tokenizer->special_tokens().unknown, 0);
  EXPECT_EQ(tokenizer->special_tokens().begin, 1);
  EXPECT_EQ(tokenizer->special_tokens().end, 2);
  EXPECT_EQ(tokenizer->special_tokens().padding, std::nullopt);
  for (const char* text : {"", "the cat", "the other number 7", "日本 é", "<s>", "</s> the"}) {
    const auto ids = tokenizer->Encode(text, /*special=*/false);
    ASSERT_TRUE(ids.ok()) << ids.status();
    EXPECT_EQ(*tokenizer->Decode(*ids), text);
    for (const int32_t id : *ids) EXPECT_GT(id, 2) << text;
  }
  EXPECT_LT(tokenizer->Encode("the cat number")->size(), 6);
  const std::vector<int32_t> bytes = *tokenizer->Encode("日");
  EXPECT_EQ(std::vector<int32_t>(bytes.end() - 3, bytes.end()), (std::vector<int32_t>{3 + 0xE6, 3 + 0x97, 3 + 0xA5}));
  EXPECT_EQ(tokenizer->TokenText(3 + 0xE6), "\xE6");
  EXPECT_EQ(tokenizer->TokenText(3 + 0x41), "A");
  const std::vector<int32_t> ids = *tokenizer->Encode("the cat"), wrapped = tokenizer->Wrap(ids).ids;
  EXPECT_EQ(wrapped.front(), 1);
  EXPECT_EQ(wrapped.size(), ids.size() + 1);
  EXPECT_EQ(*tokenizer->Encode("<s>the cat"), wrapped);
  EXPECT_EQ(*tokenizer->Decode(wrapped), "the cat");
  EXPECT_EQ(*tokenizer->DecodeWithSpecial(wrapped), "<s>the cat");
  EXPECT_EQ(tokenizer->Encode("the \xFF").status().message(), "not UTF-8 at byte 4 (0xFF)");
  EXPECT_EQ(tokenizer->Decode({5, 320}).status().message(), "id 320, at position 1, is not in 0 .. 319");
}

TEST(SentencePieceTokenizerTest, SettingsBesideTheFileCount) {
  ASSERT_NE(Learn({{"model_type", "bpe"}, {"byte_fallback", "true"}, {"vocab_size", "320"}}), nullptr);
  const std::string config = testing::TempDir() + "/tokenizer_config.json";
  ASSERT_TRUE(WriteFile(config, {R"({"tokenizer_class": "LlamaTokenizer", "add_bos_token": false, )",
                                 R"("add_eos_token": true, "bos_token": "<s>", "eos_token": "</s>"})"})
                  .ok());
  const auto llama = LoadTokenizer(Path());
  ASSERT_TRUE(llama.ok()) << llama.status();
  EXPECT_EQ((*llama)->Wrap({5}).ids, (std::vector<int32_t>{5, 2}));
  ASSERT_TRUE(WriteFile(config, {R"({"add_eos_token": true, "bos_token": "<s>", "eos_token": "</s>"})"}).ok());
  EXPECT_EQ((*LoadTokenizer(Path()))->Wrap({5}).ids, (std::vector<int32_t>{1, 5, 2}));
  ASSERT_TRUE(WriteFile(config, {R"({"tokenizer_class": "PegasusTokenizer"})"}).ok());
  EXPECT_EQ(LoadTokenizer(Path()).status().message(),
            config + ": tokenizer_class is PegasusTokenizer, which needs its tokenizer.json");
  std::filesystem::remove(config);
}

TEST(SentencePieceTokenizerTest, UnigramAsT5HasIt) {
  const auto tokenizer = Learn({{"model_type", "unigram"},
                                {"vocab_size", "40"},
                                {"hard_vocab_limit", "false"},
                                {"bos_id", "-1"},
                                {"pad_id", "0"},
                                {"eos_id", "1"},
                                {"unk_id", "2"}});
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_EQ(tokenizer->special_tokens().begin, std::nullopt);
  EXPECT_EQ(tokenizer->special_tokens().padding, 0);
  EXPECT_EQ(tokenizer->special_tokens().end, 1);
  EXPECT_EQ(tokenizer->special_tokens().unknown, 2);
  const std::vector<int32_t> ids = *tokenizer->Encode("the cat");
  const std::vector<int32_t> wrapped = tokenizer->Wrap(ids).ids;
  EXPECT_EQ(wrapped.back(), 1);
  EXPECT_EQ(wrapped.size(), ids.size() + 1);
  EXPECT_EQ(*tokenizer->Decode(wrapped), "the cat");
  EXPECT_EQ(tokenizer->Encode("日")->back(), 2);
  EXPECT_EQ(*tokenizer->DecodeWithSpecial(*tokenizer->Encode("the 日")), "the  ⁇ ");
}

TEST(SentencePieceTokenizerTest, RefusesWhatIsNoModel) {
  for (const char* contents : {"", "garbage", "{}", "\n\x05"}) {
    EXPECT_EQ(Load(contents).status().message(), absl::StrCat(Path(), ": not a SentencePiece model"));
  }
  // Two pieces, the second of which has a zero byte: the library throws.
  const std::string zero(
      "\x0a\x0e\x0a\x05<unk>\x15\x00\x00\x80\xbf\x18\x02\x0a\x0c\x0a\x0a\x00\x15\x62\x0a\x00\x00tity", 30);
  const absl::Status status = Load(zero).status();
  EXPECT_TRUE(absl::StartsWith(status.message(), absl::StrCat(Path(), ": not a SentencePiece model: "))) << status;
}

}  // namespace
}  // namespace weft
