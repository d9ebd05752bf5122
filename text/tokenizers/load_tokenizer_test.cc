#include "weft/text/tokenizers/load_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

namespace weft {
namespace {

std::unique_ptr<Tokenizer> Load(const std::string& path) {
  auto tokenizer = LoadTokenizer(path);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return tokenizer.ok() ? *std::move(tokenizer) : nullptr;
}

// Compares the ids of 254 strings with those of the reference implementation.
void CheckVectors(const std::string& data, const std::string& tokenizer_path, const char* key) {
  const auto tokenizer = Load(data + tokenizer_path);
  ASSERT_NE(tokenizer, nullptr);
  std::ifstream file(data + "/tokenizer-vectors/vectors.jsonl");
  int rows = 0;
  for (std::string line; std::getline(file, line); ++rows) {
    const nlohmann::json row = nlohmann::json::parse(line);
    const std::string text = row["text"];
    const auto ids = tokenizer->Encode(text);
    ASSERT_TRUE(ids.ok()) << ids.status();
    EXPECT_EQ(*ids, row[key].get<std::vector<int32_t>>()) << tokenizer_path << ": " << text;
    if (std::string(key) == "gpt2_ids") {
      EXPECT_EQ(*tokenizer->Decode(*ids), text);
    }
  }
  EXPECT_EQ(rows, 254);
}

TEST(LoadTokenizerTest, PublishedTokenizersGiveThePublishedIds) {
  const char* data = std::getenv("WEFT_DATA");
  if (data == nullptr) GTEST_SKIP() << "WEFT_DATA is not set";
  CheckVectors(data, "/gpt2-bpe", "gpt2_ids");
  CheckVectors(data, "/gpt2-bpe/encoder.json", "gpt2_ids");
  CheckVectors(data, "/bert-uncased-vocab/vocab.txt", "bert_uncased_ids");
  CheckVectors(data, "/minilm-l6-v2", "bert_uncased_ids");  // tokenizer.json
}

TEST(LoadTokenizerTest, OneBertFromTwoKindsOfFiles) {
  const char* data = std::getenv("WEFT_DATA");
  if (data == nullptr) GTEST_SKIP() << "WEFT_DATA is not set";
  for (const char* path : {"/minilm-l6-v2/tokenizer.json", "/minilm-l6-v2/vocab.txt"}) {
    const auto bert = Load(absl::StrCat(data, path));
    ASSERT_NE(bert, nullptr);
    EXPECT_EQ(bert->vocabulary_size(), 30522);
    EXPECT_EQ(bert->special_tokens().padding, 0);
    EXPECT_EQ(bert->special_tokens().unknown, 100);
    EXPECT_EQ(bert->special_tokens().classification, 101);
    EXPECT_EQ(bert->special_tokens().separator, 102);
    EXPECT_EQ(bert->special_tokens().mask, 103);
    const auto pair = bert->WrapPair(*bert->Encode("Is it?"), *bert->Encode("Yes."));
    ASSERT_TRUE(pair.ok()) << pair.status();
    EXPECT_EQ(pair->ids, (std::vector<int32_t>{101, 2003, 2009, 1029, 102, 2748, 1012, 102}));
    EXPECT_EQ(pair->segments, (std::vector<int32_t>{0, 0, 0, 0, 0, 1, 1, 1}));
    EXPECT_EQ(*bert->Decode(pair->ids), "is it? yes.");
    EXPECT_EQ(*bert->Encode("a [MASK]."), (std::vector<int32_t>{1037, 103, 1012}));
  }
}

TEST(LoadTokenizerTest, AStoryOfLlama2c) {
  const char* data = std::getenv("WEFT_DATA");
  if (data == nullptr) GTEST_SKIP() << "WEFT_DATA is not set";
  const std::string folder = absl::StrCat(data, "/stories260K");
  const auto tokenizer = Load(folder);
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_EQ(tokenizer->vocabulary_size(), 512);
  const nlohmann::json expected = nlohmann::json::parse(std::ifstream(folder + "/expected.json"));
  const std::string text = expected["greedy_text"];
  const std::vector<int32_t> ids = expected["greedy_ids"];
  EXPECT_EQ(*tokenizer->Decode(ids), text);
  EXPECT_EQ(tokenizer->Wrap(*tokenizer->Encode(text)).ids, ids);
}

class FilesTest : public testing::Test {
 protected:
  FilesTest() : folder_(absl::StrCat(testing::TempDir(), "/tokenizer")) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
  }
  std::string Write(const std::string& name, const std::string& contents) const {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << contents;
    return folder_ + "/" + name;
  }
  // Returns the error of loading `path`, without the folder at its beginning.
  std::string Error(const std::string& path) const {
    const absl::Status status = LoadTokenizer(path).status();
    EXPECT_FALSE(status.ok()) << path;
    EXPECT_EQ(status.message().find(folder_), 0) << status;
    return std::string(status.message().substr(std::min(folder_.size() + 1, status.message().size())));
  }
  const std::string folder_;
};

TEST_F(FilesTest, OursAreKnownByTheirType) {
  Write("tokenizer.json", R"({"type":"character","characters":["a","b"]})");
  EXPECT_EQ(*Load(folder_)->Encode("ba"), (std::vector<int32_t>{1, 0}));
  const auto bytes = Load(Write("bytes.json", R"({"type":"byte"})"));
  EXPECT_EQ(*bytes->Encode("a\xFF"), (std::vector<int32_t>{'a', 0xFF}));
  EXPECT_EQ(*bytes->Decode({'a', 0xFF}), "a\xFF");
  EXPECT_EQ(bytes->vocabulary_size(), 256);
  EXPECT_FALSE(bytes->Decode({256}).ok());
}

TEST_F(FilesTest, AFolderIsSearched) {
  EXPECT_THAT(
      Error(folder_),
      testing::StartsWith(" the folder has none of tokenizer.json, vocab.bpe, merges.txt, source.spm, vocab.txt, "
                          "tokenizer.bin, tokenizer.model, spiece.model"));
  Write("vocab.txt", "[UNK]\na\n");
  EXPECT_EQ(*Load(folder_)->Encode("A b"), (std::vector<int32_t>{1, 0}));
  Write("vocab.json", R"({"a":0,"b":1,"ab":2})");
  Write("merges.txt", "#version: 0.2\na b\n");
  EXPECT_EQ(*Load(folder_)->Encode("ab"), std::vector<int32_t>{2});
  EXPECT_EQ(*Load(folder_ + "/vocab.json")->Encode("ab"), std::vector<int32_t>{2});
  EXPECT_EQ(*Load(folder_ + "/vocab.txt")->Encode("ab"), std::vector<int32_t>{0});
  Write("tokenizer.json", R"({"type":"byte"})");
  EXPECT_EQ(*Load(folder_)->Encode("ab"), (std::vector<int32_t>{'a', 'b'}));
}

TEST_F(FilesTest, ACasedBertSaysSoBesideItsVocabulary) {
  Write("vocab.txt", "[UNK]\na\nA\nÉ\nE\n");
  EXPECT_EQ(*Load(folder_)->Encode("A a"), (std::vector<int32_t>{1, 1}));
  Write("tokenizer_config.json", R"({"do_lower_case": false, "model_max_length": 512})");
  EXPECT_EQ(*Load(folder_)->Encode("A a É"), (std::vector<int32_t>{2, 1, 3}));
  Write("tokenizer_config.json", R"({"do_lower_case": false, "strip_accents": true})");
  EXPECT_EQ(*Load(folder_ + "/vocab.txt")->Encode("É"), std::vector<int32_t>{4});
  Write("tokenizer_config.json", R"({"do_lower_case": "no"})");
  EXPECT_EQ(Error(folder_), "tokenizer_config.json: do_lower_case: \"no\" is not of the right type");
}

// As in transformers 5.24: tokenizer_config.json gives the roles, and special_tokens_map.json goes before it.
TEST_F(FilesTest, TheFilesBesideATokenizerGiveItsRoles) {
  Write("tokenizer.json", R"({"model":{"type":"BPE","vocab":{"a":0,"</s>":1,"<s>":2,"<x>":3,"b":4},"merges":[]},
    "added_tokens":[{"content":"<s>","id":2,"special":true},{"content":"<x>","id":3,"special":true}],
    "padding":{"pad_token":"<x>"},"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false},
    "decoder":{"type":"ByteLevel"}})");
  SpecialTokens special = Load(folder_)->special_tokens();
  EXPECT_EQ(special.begin, 2);
  EXPECT_EQ(special.end, std::nullopt);  // "</s>" is an ordinary token
  EXPECT_EQ(special.padding, 3);
  Write("tokenizer_config.json", R"({"eos_token":"<x>","bos_token":null,"pad_token":{"content":"a"},"cls_token":"?"})");
  auto tokenizer = Load(folder_);
  special = tokenizer->special_tokens();
  EXPECT_EQ(special.end, 3);
  EXPECT_EQ(special.begin, std::nullopt);
  EXPECT_EQ(special.classification, std::nullopt);
  EXPECT_EQ(special.padding, 0);
  EXPECT_EQ(*tokenizer->Decode({0, 4, 3, 1}), "b</s>");  // a token with a role is special
  Write("special_tokens_map.json", R"({"eos_token":{"content":"</s>","lstrip":false}})");
  EXPECT_EQ(Load(folder_)->special_tokens().end, 1);
  EXPECT_THAT(*TokenizerFiles(folder_), testing::SizeIs(3));
  Write("tokenizer_config.json", R"({"added_tokens_decoder":{"4":{"content":"b","special":true}}, "eos_token":"b"})");
  EXPECT_EQ(Load(folder_)->special_tokens().end, 4);
  EXPECT_EQ(*Load(folder_)->Decode({0, 4}), "a");
  Write("tokenizer_config.json", R"({"bos_token":7})");
  EXPECT_EQ(Error(folder_), "tokenizer_config.json: bos_token: it has no content");
  Write("tokenizer_config.json", "{}");
  Write("special_tokens_map.json", R"({"eos_token":7})");
  EXPECT_EQ(Error(folder_), "special_tokens_map.json: eos_token: it has no content");
}

// The ids are those of transformers 5.24. Its GPT2Tokenizer takes add_prefix_space from tokenizer_config.json, and
// PreTrainedTokenizerFast takes it from tokenizer.json.
TEST_F(FilesTest, SettingsSayHowATextIsSplit) {
  Write("tokenizer.json", R"({"model":{"type":"BPE","vocab":{"a":0,"Ġ":1,"<":2,"s":3,">":4,"<s>":5},"merges":[]},
    "added_tokens":[{"content":"<s>","id":5,"special":true}],
    "pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false},"decoder":{"type":"ByteLevel"}})");
  const auto ids = [&](const std::string& config) {
    Write("tokenizer_config.json", config);
    return *Load(folder_)->Encode("a<s>");
  };
  EXPECT_EQ(ids("{}"), (std::vector<int32_t>{0, 5}));
  EXPECT_EQ(ids(R"({"split_special_tokens":true})"), (std::vector<int32_t>{0, 2, 3, 4}));
  EXPECT_EQ(ids(R"({"tokenizer_class":"GPT2Tokenizer","add_prefix_space":true})"), (std::vector<int32_t>{1, 0, 5}));
  EXPECT_EQ(ids(R"({"tokenizer_class":"PreTrainedTokenizerFast","add_prefix_space":true})"),
            (std::vector<int32_t>{0, 5}));
  Write("tokenizer_config.json", R"({"add_prefix_space":"no"})");
  EXPECT_EQ(Error(folder_), "tokenizer_config.json: add_prefix_space: \"no\" is not of the right type");
}

TEST_F(FilesTest, TwoFilesOfByteLevelBpe) {
  Write("encoder.json", R"({"Ġ": 1, "a": 0, "Ġa": 2, "<|endoftext|>": 3})");
  Write("vocab.bpe", "#version: 0.2\nĠ a\r\n\n");
  const auto tokenizer = Load(folder_);
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_EQ(tokenizer->TokenText(2), " a");
  EXPECT_EQ(*tokenizer->Encode("a a"), (std::vector<int32_t>{0, 2}));
  ASSERT_EQ(tokenizer->special_token_list().size(), 1);
  EXPECT_EQ(tokenizer->special_token_list()[0].id, 3);

  const struct {
    const char *json, *message;
  } vocabularies[] = {
      {"", "it is not JSON: line 1, column 1"},
      {"{}", "it has no tokens"},
      {R"({"a": 0, "a": 1})", "'a' occurs twice"},
      {R"({"a": "0"})", "the id of 'a' is \"0\", not a whole number"},
      {R"({"a": 0, "b": 0})", "tokens 'a' and 'b' both have id 0"},
      {R"({"a": 0, "b": 4})", "token 'b' has id 4, but there are 2 tokens"},
      {R"({"a": 0, "日": 1})", "token '日': U+65E5 '日' stands for no byte"},
  };
  for (const auto& row : vocabularies) {
    Write("encoder.json", row.json);
    EXPECT_THAT(Error(folder_), testing::StartsWith(absl::StrCat("encoder.json: ", row.message)));
  }
  Write("encoder.json", R"({"a": 0})");
  const struct {
    const char *text, *message;
  } lists[] = {
      {"#version: 0.2\na b\nab", "line 3: 'ab' is not two tokens with a space between them"},
      {"a b c", "line 1: 'a b c' is not two tokens with a space between them"},
      {"a ", "line 1: a token of the merge is empty"},
      {"a 日", "line 1: U+65E5 '日' stands for no byte"},
  };
  for (const auto& row : lists) {
    Write("vocab.bpe", row.text);
    EXPECT_EQ(Error(folder_), absl::StrCat("vocab.bpe: ", row.message));
  }
}

// Two files say nothing of the tokens around a text. The settings do, as in OPT's folders, or the class.
TEST_F(FilesTest, SettingsAndClassSayWhatSurroundsATextOfTwoFiles) {
  Write("vocab.json", R"({"<s>":0,"<pad>":1,"</s>":2,"a":3,"Ġ":4,"Ġa":5})");
  Write("merges.txt", "Ġ a\n");
  const auto wrapped = [&](const std::string& config) {
    Write("tokenizer_config.json", config);
    const auto tokenizer = Load(folder_);
    return tokenizer == nullptr ? std::vector<int32_t>() : tokenizer->Wrap({3}).ids;
  };
  EXPECT_EQ(wrapped(R"({"bos_token":"</s>"})"), std::vector<int32_t>{3});
  EXPECT_EQ(wrapped(R"({"tokenizer_class":"GPT2Tokenizer","bos_token":"</s>","add_bos_token":true})"),
            (std::vector<int32_t>{2, 3}));
  EXPECT_EQ(wrapped(R"({"bos_token":"<s>","eos_token":"</s>","add_bos_token":true,"add_eos_token":true})"),
            (std::vector<int32_t>{0, 3, 2}));
  EXPECT_EQ(Load(folder_)->WrapPair({3}, {5})->ids, (std::vector<int32_t>{0, 3, 2, 0, 5, 2}));

  Write("tokenizer_config.json", R"({"tokenizer_class":"RobertaTokenizer"})");
  EXPECT_EQ(Error(folder_),
            "tokenizer_config.json: tokenizer_class is RobertaTokenizer, but the vocabulary lacks <s>, </s> or <mask>");

  Write("vocab.json", R"({"<s>":0,"<pad>":1,"</s>":2,"a":3,"Ġ":4,"Ġa":5,"<mask>":6})");
  std::vector<std::string> configs = {"{}"};
  for (const char* const kind : {"Roberta", "Bart", "Longformer", "LED", "Mvp"}) {
    for (const char* const end : {"Tokenizer", "TokenizerFast"}) {
      configs.push_back(absl::StrCat(R"({"tokenizer_class":")", kind, end, R"("})"));
    }
  }
  for (const std::string& config : configs) {
    EXPECT_EQ(wrapped(config), (std::vector<int32_t>{0, 3, 2})) << config;
    EXPECT_EQ(Load(folder_)->WrapPair({3}, {5})->ids, (std::vector<int32_t>{0, 3, 2, 2, 5, 2})) << config;
    EXPECT_EQ(*Load(folder_)->Encode("a <mask>"), (std::vector<int32_t>{3, 6})) << config;
  }
  EXPECT_EQ(wrapped(R"({"tokenizer_class":"GPT2Tokenizer"})"), std::vector<int32_t>{3});
  Write("tokenizer_config.json", R"({"tokenizer_class":"Qwen2Tokenizer"})");
  EXPECT_EQ(Error(folder_),
            "tokenizer_config.json: tokenizer_class is Qwen2Tokenizer, which needs "
            "its tokenizer.json");

  // A tokenizer.json says it itself.
  Write("tokenizer.json", R"({"model":{"type":"BPE","vocab":{"a":0,"<s>":1},"merges":[]},
    "added_tokens":[{"content":"<s>","id":1,"special":true}],
    "pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false},"decoder":{"type":"ByteLevel"}})");
  Write("tokenizer_config.json", R"({"bos_token":"<s>","add_bos_token":true})");
  EXPECT_EQ(Load(folder_)->Wrap({0}).ids, std::vector<int32_t>{0});
}

// transformers saves a vocab.txt that repeats a token without the token's earlier id.
TEST_F(FilesTest, IdsMayHaveNoToken) {
  Write("tokenizer.json", R"({"model":{"type":"WordPiece","vocab":{"[UNK]":0,"b":2,"a":3},"unk_token":"[UNK]"},
    "normalizer":null,"pre_tokenizer":{"type":"BertPreTokenizer"},"decoder":{"type":"WordPiece"}})");
  const auto tokenizer = Load(folder_);
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_EQ(tokenizer->vocabulary_size(), 4);
  EXPECT_EQ(*tokenizer->Encode("a b c"), (std::vector<int32_t>{3, 2, 0}));
  EXPECT_EQ(tokenizer->TokenText(1), "");
}

// As in transformers 5.24's BertTokenizer, which has five special tokens, whatever other names the vocabulary has.
TEST_F(FilesTest, SettingsNameTheSpecialTokensOfABert) {
  Write("vocab.txt", "[UNK]\n[CLS]\n[SEP]\na\n<s>\n<unk>\n");
  EXPECT_EQ(*Load(folder_)->Encode("[CLS] a <s>"), (std::vector<int32_t>{1, 3, 0, 0, 0}));
  Write("tokenizer_config.json", R"({"unk_token": "<unk>", "cls_token": "<s>"})");
  const auto bert = Load(folder_);
  EXPECT_EQ(*bert->Encode("[CLS] a <s>"), (std::vector<int32_t>{5, 5, 5, 3, 4}));
  EXPECT_EQ(bert->Wrap({3}).ids, (std::vector<int32_t>{4, 3, 2}));
  EXPECT_EQ(bert->special_tokens().unknown, 5);
  EXPECT_EQ(*bert->Decode({4, 3, 5, 2, 1}), "a [CLS]");
}

TEST_F(FilesTest, ErrorsNameFileAndLocation) {
  EXPECT_EQ(LoadTokenizer("/no/such/file.json").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Error(Write("a.json", "{\"type\": \"byte\"")).substr(0, 23), "a.json: it is not JSON:");
  EXPECT_EQ(Error(Write("a.json", "{}")), "a.json: it has neither the \"type\" nor the \"model\" of a tokenizer");
  EXPECT_EQ(Error(Write("a.json", R"({"type":"unigram"})")).substr(0, 23), "a.json: not a tokenizer");
  EXPECT_EQ(Error(Write("a.json", R"({"model":{"type":"Words"}})")),
            "a.json: model: its type is 'Words', not BPE, Unigram, WordLevel or WordPiece");
  EXPECT_EQ(Error(Write("a.txt", "[UNK]\na\n\xFF\n")), "a.txt: line 3: not UTF-8 at byte 0 (0xFF)");
  EXPECT_EQ(Error(Write("a.bin", "1234567")), "a.bin: piece 0, at byte 4: the file ends there");
  EXPECT_EQ(Error(Write("a.model", "garbage")), "a.model: not a SentencePiece model");
  EXPECT_EQ(Error(Write("a.xyz", "")).substr(0, 38), "a.xyz: its name is none of a tokenizer");
  Write("vocab.json", R"({"a":0,"b":1,"ab":1})");
  EXPECT_NE(LoadTokenizer(folder_ + "/vocab.json").status().message().find("merges.txt: No such file"),
            std::string::npos);
  Write("merges.txt", "a b\nb c\n");
  EXPECT_EQ(Error(folder_), "vocab.json: tokens 'ab' and 'b' both have id 1");
  Write("vocab.json", R"({"a":0,"b":1,"ab":2})");
  EXPECT_EQ(Error(folder_), "merges.txt: merge 1, 'b' 'c': 'c' is not in the vocabulary");
}

}  // namespace
}  // namespace weft
