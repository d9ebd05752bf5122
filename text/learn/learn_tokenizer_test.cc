// The expected vocabularies are those that tokenizers 0.23.3 learns from the same text. Its WordPiece trainer numbers
// the alphabet in the order of a hash table, and equal counts are decided by these numbers. So it was given the
// alphabet as special tokens, in the order of code points.
#include "weft/text/learn/learn_tokenizer.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "weft/base/file.h"
#include "weft/text/tokenizers/tokenizer.h"
#include "weft/text/tokenizers/tokenizer_json.h"

namespace weft {
namespace {

using nlohmann::json;

class LearnTokenizerTest : public testing::Test {
 protected:
  LearnTokenizerTest() : folder_(testing::TempDir() + testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::create_directories(folder_);
  }
  std::string Write(const std::string& name, const std::string& text) const {
    EXPECT_TRUE(WriteFile(folder_ + "/" + name, {text}).ok());
    return folder_ + "/" + name;
  }
  // 40 paragraphs with numbers, accents, an apostrophe of three bytes, and ideographs.
  std::string Cats() const {
    std::string text;
    for (int i = 0; i < 40; ++i) {
      absl::StrAppend(&text, "The cat ", i * i, " saw the naïve Dogs’ house; it's theirs, ",
                      absl::string_view("不不").substr(0, 3 * (i % 3)), "\n\n");
    }
    return Write("cats.txt", text);
  }
  // Returns the tokenizer that is read from the folder to which `learnt` is written.
  std::unique_ptr<Tokenizer> WriteAndLoad(const LearntTokenizer& learnt) const {
    EXPECT_TRUE(WriteTokenizerFolder(folder_ + "/out", learnt.file).ok());
    auto tokenizer = LoadTokenizer(folder_ + "/out");
    EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
    return *std::move(tokenizer);
  }
  std::string Message(const std::string& text, const LearnTokenizerOptions& options) const {
    return std::string(LearnTokenizer({Write("text", text)}, options).status().message());
  }

  const std::string folder_;
};

TEST_F(LearnTokenizerTest, ByteLevelBpeAsHuggingFaceLearnsIt) {
  const auto learnt = LearnTokenizer({Cats()}, {.vocabulary = 300, .threads = 2});
  ASSERT_TRUE(learnt.ok()) << learnt.status();
  EXPECT_EQ(learnt->vocabulary, 300);
  const json file = json::parse(learnt->file.contents);
  EXPECT_EQ(absl::StrJoin(file["model"]["merges"].get<std::vector<std::string>>(), "|"),
            "h e|t he|Ġ the|' s|D o|T he|a t|a w|a Ã|c at|g s|h o|i r|i t|n aÃ|s e|s aw|u se|v e|¯ ve|â Ģ|Ġ Do|Ġ cat|"
            "Ġ ho|Ġ it|Ġ naÃ|Ġ saw|Ġthe ir|âĢ Ļ|ĠDo gs|Ġho use|ĠnaÃ ¯ve|Ġtheir s|¸ į|ä ¸į|Ġ ä¸į|Ġ 1|Ġ Ċ|Ġä¸į ä¸į|2 5|"
            "Ġ 4|0 0|2 9");
  const auto tokenizer = WriteAndLoad(*learnt);
  EXPECT_EQ(*tokenizer->Encode("The cat's naïve house 16\n\nDog"),
            (std::vector<int32_t>{262, 279, 260, 288, 287, 293, 22, 199, 199, 261, 71}));
  EXPECT_EQ(*tokenizer->Encode("日本 the"), (std::vector<int32_t>{163, 246, 99, 163, 251, 106, 259}));
  EXPECT_EQ(tokenizer->special_tokens().end, 0);
}

TEST_F(LearnTokenizerTest, ATextInMemoryGivesTheSameModelAsItsFile) {
  const LearnTokenizerOptions options = {.vocabulary = 300,
                                         .special_tokens = std::vector<std::string>{"<pad>", "<s>", "</s>"}};
  const auto learnt = LearnTokenizer({Cats()}, options);
  ASSERT_TRUE(learnt.ok()) << learnt.status();
  const auto model = LearnByteLevelBpe(*ReadFile(Cats()), options);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(WriteTokenizerJson(*model), learnt->file.contents);
}

TEST(LearnByteLevelBpeTest, MakesATokenizerOfTheSizeAskedFor) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += "the " + std::to_string(i * i) + " cats of the house, naïve ones; ";
  const auto model =
      LearnByteLevelBpe(text, {.vocabulary = 320, .special_tokens = std::vector<std::string>{"<pad>", "<s>", "</s>"}});
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->vocabulary.size(), 320);
  EXPECT_EQ(model->vocabulary.token(0), "<pad>");
  EXPECT_EQ(model->vocabulary.token(3), "!");
  const auto tokenizer = Bpe::Create(*model);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ((*tokenizer)->special_tokens().padding, 0);
  EXPECT_EQ((*tokenizer)->special_tokens().begin, 1);
  EXPECT_EQ((*tokenizer)->special_tokens().end, 2);
  EXPECT_EQ((*tokenizer)->Encode(" the naïve house")->size(), 3);
  EXPECT_EQ(*(*tokenizer)->Decode(*(*tokenizer)->Encode("日本 the x")), "日本 the x");
}

TEST(LearnByteLevelBpeTest, StopsWhenNoPairIsThereTwice) {
  const auto model = LearnByteLevelBpe("ab ab", {.vocabulary = 1000});
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(model->merges, (std::vector<TokenPair>{{"a", "b"}}));
  EXPECT_EQ(model->vocabulary.size(), 258);
  EXPECT_EQ(LearnByteLevelBpe("", {.vocabulary = 1000})->vocabulary.size(), 257);
}

TEST(LearnByteLevelBpeTest, RefusesWhatCannotBeLearnt) {
  EXPECT_EQ(LearnByteLevelBpe("a", {.vocabulary = 256}).status().message(),
            "vocabulary: 256 has no room for 1 special tokens and 256 tokens of the alphabet");
  EXPECT_EQ(LearnByteLevelBpe("a\xFF", {.vocabulary = 300}).status().message(), "not UTF-8 at byte 1 (0xFF)");
  EXPECT_FALSE(
      LearnByteLevelBpe("a", {.vocabulary = 300, .special_tokens = std::vector<std::string>{"<s>", "<s>"}}).ok());
}

TEST_F(LearnTokenizerTest, WordPieceAsHuggingFaceLearnsIt) {
  const auto learnt = LearnTokenizer({Cats()}, {.kind = "wordpiece", .vocabulary = 90, .threads = 2});
  ASSERT_TRUE(learnt.ok()) << learnt.status();
  std::vector<std::string> tokens(90);
  const json file = json::parse(learnt->file.contents);
  for (const auto& [token, id] : file["model"]["vocab"].items()) tokens.at(id.get<size_t>()) = token;
  EXPECT_EQ(absl::StrJoin(tokens, " "),
            "[PAD] [UNK] [CLS] [SEP] [MASK] ' , 0 1 2 3 4 5 6 7 8 9 ; a c d e g h i n o r s t u v w ’ 不 ##0 ##1 ##2 "
            "##3 ##4 ##5 ##6 ##7 ##8 ##9 ##a ##e ##g ##h ##i ##o ##r ##s ##t ##u ##v ##w th the ca do ho it na sa ##gs "
            "##ir ##iv ##se ##use their cat dogs house naiv saw theirs naive 10 12 ##25 ##44 16 144 25 36 ##00 ##24 "
            "##29 ##41");
  EXPECT_EQ(file["normalizer"], json::parse(R"({"type": "BertNormalizer", "clean_text": true,
      "handle_chinese_chars": true, "strip_accents": true, "lowercase": true})"));
  const auto tokenizer = WriteAndLoad(*learnt);
  EXPECT_EQ(*tokenizer->Encode("THEIRS 144 日"), (std::vector<int32_t>{76, 83, 1}));
  EXPECT_EQ(tokenizer->Wrap({76}).ids, (std::vector<int32_t>{2, 76, 3}));
  EXPECT_EQ(tokenizer->WrapPair({76}, {77})->segments, (std::vector<int32_t>{0, 0, 0, 1, 1}));
}

TEST_F(LearnTokenizerTest, WordPieceSettings) {
  LearnTokenizerOptions options = {.kind = "wordpiece", .vocabulary = 40};
  options.special_tokens = {"[UNK]", "<x>"};
  options.lowercase = false;
  options.limit_alphabet = 3;  // a, b and É; the rarer z is left out of its words
  options.min_frequency = 3;
  const auto learnt = LearnTokenizer({Write("text", "ab ab ab Éa Éa Éa bb bzb z\n")}, options);
  ASSERT_TRUE(learnt.ok()) << learnt.status();
  const json vocabulary = json::parse(learnt->file.contents)["model"]["vocab"];
  EXPECT_EQ(vocabulary,
            json::parse(R"({"[UNK]": 0, "<x>": 1, "a": 2, "b": 3, "É": 4, "##a": 5, "##b": 6, "ab": 7, "Éa": 8})"));
  EXPECT_EQ(WriteAndLoad(*learnt)->Wrap({3}).ids, std::vector<int32_t>{3});  // no [CLS] and [SEP]
}

TEST_F(LearnTokenizerTest, SentencePieceModels) {
  for (const char* kind : {"unigram", "sentencepiece-bpe"}) {
    LearnTokenizerOptions options = {.kind = kind, .vocabulary = 300};
    options.special_tokens = {"<pad>", "<mask>"};
    options.byte_fallback = true;
    options.max_sentence_length = 100;
    const std::string more = Write("more.txt", absl::StrCat(std::string(101, 'x'), "\nA last line\r\nwithout an end"));
    const auto learnt = LearnTokenizer({Cats(), more}, options);
    ASSERT_TRUE(learnt.ok()) << learnt.status();
    EXPECT_EQ(learnt->file.name, "tokenizer.model");
    EXPECT_EQ(learnt->skipped_lines, 1);
    EXPECT_EQ(learnt->bytes, std::filesystem::file_size(Cats()) + std::filesystem::file_size(more));
    const auto tokenizer = WriteAndLoad(*learnt);
    EXPECT_EQ(tokenizer->vocabulary_size(), learnt->vocabulary);
    EXPECT_EQ(*tokenizer->Encode("<pad><mask>"), (std::vector<int32_t>{3, 4}));
    EXPECT_EQ(*tokenizer->Decode(*tokenizer->Encode("the naïve Dogs 日")), "the naïve Dogs 日");  // 日 by its bytes
  }
}

TEST_F(LearnTokenizerTest, RefusesWhatCannotBeLearnt) {
  for (const std::string& kind : LearntTokenizerKinds()) {
    EXPECT_EQ(Message("", {.kind = kind, .vocabulary = 300}), "the texts are empty: there is nothing to learn from");
    EXPECT_EQ(Message("a\nb\xFF", {.kind = kind, .vocabulary = 300}),
              absl::StrCat(folder_, "/text, line 2: not UTF-8 at byte 1 (0xFF)"));
  }
  EXPECT_EQ(Message("a", {.vocabulary = 256}),
            "vocabulary: 256 has no room for 1 special tokens and 256 tokens of the alphabet");
  EXPECT_EQ(Message("ab ba", {.kind = "wordpiece", .vocabulary = 8}),
            "vocabulary: 8 has no room for 5 special tokens and 4 tokens of the alphabet");
  EXPECT_EQ(Message("a", {.special_tokens = std::vector<std::string>{"<s>", ""}}), "special-tokens: a token is empty");
  EXPECT_EQ(Message("a", {.special_tokens = std::vector<std::string>{"<s>", "<s>"}}),
            "special-tokens: token '<s>' occurs twice, with ids 0 and 1");
  EXPECT_EQ(Message("a", {.kind = "wordpiece", .special_tokens = std::vector<std::string>{"[PAD]"}}),
            "special-tokens: wordpiece needs [UNK], the token of unknown words");
  EXPECT_EQ(Message("a", {.lowercase = true}),
            "lowercase: the kind byte-level-bpe has no such setting; it belongs to wordpiece");
  EXPECT_EQ(Message("a", {.kind = "unigram", .min_frequency = 2}),
            "min-frequency: the kind unigram has no such setting; it belongs to byte-level-bpe, wordpiece");
  EXPECT_EQ(Message("a", {.kind = "bpe"}),
            "kind: 'bpe' is not one of byte-level-bpe, wordpiece, unigram, sentencepiece-bpe");
  EXPECT_EQ(
      Message("the cat sat\n", {.kind = "unigram", .vocabulary = 300}),
      "vocabulary: SentencePiece's trainer says: Vocabulary size too high (300). Please set it to a value <= 11.");
  EXPECT_EQ(Message("the cat sat\n", {.kind = "sentencepiece-bpe", .vocabulary = 5}),
            "vocabulary: SentencePiece's trainer says: Vocabulary size is smaller than required_chars. 5 vs 10. "
            "Increase vocab_size "
            "or decrease character_coverage with --character_coverage option.");
  EXPECT_EQ(Message("a", {.kind = "unigram", .vocabulary = 4, .special_tokens = std::vector<std::string>{"<x>"}}),
            "vocabulary: 4 has no room for <unk>, <s>, </s> and 1 more special tokens");
  EXPECT_EQ(Message("the cat sat\n", {.kind = "unigram", .vocabulary = 30, .max_sentence_length = 5}),
            "max-sentence-length: all 1 lines are longer than 5 bytes");
}

}  // namespace
}  // namespace weft
