#include "weft/text/load_tokenizer.h"

#include <gtest/gtest.h>

#include <cstdlib>
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

// 254 strings with their ids, as the program that most others use gives them.
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

}  // namespace
}  // namespace weft
