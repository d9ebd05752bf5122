// Texts become token files: documents end where they should, and neither parts nor cuts change a token.
#include "weft/text/data/tokenize_files.h"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/algorithm/container.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/base/file.h"
#include "weft/text/data/token_files.h"
#include "weft/text/learn/learn_tokenizer.h"
#include "weft/text/tokenizers/character_tokenizer.h"
#include "weft/text/tokenizers/load_tokenizer.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TokenizeFilesTest : public testing::Test {
 protected:
  TokenizeFilesTest()
      : folder_(testing::TempDir() + "/" + testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    Write("tokenizer.json", ByteTokenizer::ToJson());
  }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  void Write(const std::string& name, const std::string& text) const {
    ASSERT_TRUE(WriteFile(Path(name), {text}).ok());
  }

  std::vector<std::string> Paths(const std::vector<std::string>& names) const {
    std::vector<std::string> paths;
    for (const std::string& name : names) paths.push_back(Path(name));
    return paths;
  }
  // The files of the tokenizer of bytes, or of another one.
  std::vector<NamedContents> Files(const std::string& name = "tokenizer.json") const {
    return *ReadTokenizerFiles(Path(name));
  }

  // Tokenizes the files and returns the decoded documents, each with the text of its end token.
  std::vector<std::string> Tokenized(const std::vector<std::string>& names, TokenizeOptions options) const {
    options.folder = Path("out");
    std::filesystem::remove_all(options.folder);
    const std::vector<std::string> paths = Paths(names);
    const absl::StatusOr<TokenizeResult> result = TokenizeFiles(paths, options);
    EXPECT_TRUE(result.ok()) << result.status();
    if (!result.ok()) return {};
    const TokenFiles files = *TokenFiles::Open(options.folder);
    const auto tokenizer = *LoadTokenizer(options.folder);
    EXPECT_EQ(result->documents, files.documents());
    std::vector<std::string> documents(static_cast<size_t>(result->documents));
    std::vector<int32_t> ids, numbers;
    int32_t first = 0;
    for (const DataSplit split : {DataSplit::kTrain, DataSplit::kValidation}) {
      ids.resize(static_cast<size_t>(files.size(split)));
      numbers.resize(ids.size());
      EXPECT_TRUE(files.Read(split, 0, absl::MakeSpan(ids)).ok());
      EXPECT_TRUE(files.Documents(split, 0, absl::MakeSpan(numbers)).ok());
      for (size_t i = 0; i < ids.size(); ++i) {
        documents[static_cast<size_t>(first + numbers[i])] += *tokenizer->DecodeWithSpecial({ids[i]});
      }
      if (!numbers.empty()) first += numbers.back();
    }
    return documents;
  }

  std::string folder_;
};

TEST_F(TokenizeFilesTest, DocumentsEndAtFilesAndBlankLines) {
  Write("a", "\none\ntwo\n\n\nthree\r\n\r\nfour");
  Write("b", "five\n\n");
  const TokenizeOptions options = {.tokenizer = Files()};
  EXPECT_THAT(Tokenized({"a", "b"}, options), ElementsAre("\none\ntwo\n\n\nthree\r\n\r\nfour", "five\n\n"));
  TokenizeOptions blank_lines = options;
  blank_lines.document_end = DocumentEnd::kBlankLine;
  EXPECT_THAT(Tokenized({"a", "b"}, blank_lines), ElementsAre("one\ntwo\n", "three\r\n", "four", "five\n"));
}

std::string SomeText() {
  std::string text;
  for (int i = 0; i < 3000; ++i) {
    text += absl::StrCat(i % 7 == 0 ? "the caf\u00E9 " : "they're  ", i * i % 97, i % 5 == 0 ? "\n" : " ",
                         i % 11 == 0 ? "\n  indented" : "end.", i % 13 == 0 ? "\n" : "", i % 50 == 0 ? "\n\n" : "");
  }
  return text;
}

TEST_F(TokenizeFilesTest, ALearntTokenizerEndsDocuments) {
  Write("a", SomeText() + "<|endoftext|>\nnext");
  TokenizeOptions options = {.tokenizer = *LearnFromBeginnings(Paths({"a"}), 300),
                             .document_end = DocumentEnd::kEndOfText};
  EXPECT_THAT(Tokenized({"a"}, options), ElementsAre(SomeText() + "<|endoftext|>", "next<|endoftext|>"));
  options.document_end = DocumentEnd::kFile;
  EXPECT_THAT(Tokenized({"a"}, options), ElementsAre(SomeText() + "<|endoftext|>\nnext<|endoftext|>"));
  EXPECT_EQ(TokenFiles::Open(Path("out"))->index().vocabulary, 300);
}

// Encoding the whole text at once gives the expected tokens. The text has special tokens with white space around them.
TEST_F(TokenizeFilesTest, CutsDoNotChangeTheTokens) {
  const std::string plain = SomeText();
  const std::string marked = absl::StrReplaceAll(plain, {{"indented", "<|endoftext|> in"}, {"9\n", "9\n<|im end|>"}});
  Write("a", marked);
  Tokenized({"a"}, {.tokenizer = *LearnFromBeginnings(Paths({"a"}), 400)});
  std::filesystem::create_directories(Path("learnt"));
  std::ifstream learnt(Path("out/tokenizer.json"));
  nlohmann::json json = nlohmann::json::parse(learnt);
  json["added_tokens"][0]["rstrip"] = true;
  int32_t added = json["added_tokens"][0]["id"].get<int32_t>() + 1;
  for (const auto& [token, id] : json["model"]["vocab"].items()) added = std::max(added, id.get<int32_t>() + 1);
  json["added_tokens"].push_back({{"content", "<|im end|>"}, {"id", added}, {"special", true}, {"lstrip", true}});
  Write("learnt/tokenizer.json", json.dump());
  const auto tokenizer = *LoadTokenizer(Path("learnt"));
  for (const size_t chunk : {64, 101, 1000, -100, -1000, 1 << 20}) {
    const bool special = static_cast<int64_t>(chunk) > 0;
    const std::string& text = chunk == 64 ? plain : marked;  // 64 bytes of the other text may have no place to cut
    Write("a", text);
    std::vector<int32_t> expected = *tokenizer->Encode(text, special);
    EXPECT_EQ(absl::c_count(expected, added) > 10, special && chunk != 64);
    expected.push_back(*tokenizer->special_tokens().end);
    Tokenized({"a"}, {.tokenizer = Files("learnt"), .special_tokens = special, .chunk = special ? chunk : -chunk});
    const TokenFiles files = *TokenFiles::Open(Path("out"));
    std::vector<int32_t> train(static_cast<size_t>(files.size(DataSplit::kTrain))),
        validation(static_cast<size_t>(files.size(DataSplit::kValidation)));
    EXPECT_TRUE(files.Read(DataSplit::kTrain, 0, absl::MakeSpan(train)).ok());
    EXPECT_TRUE(files.Read(DataSplit::kValidation, 0, absl::MakeSpan(validation)).ok());
    train.insert(train.end(), validation.begin(), validation.end());
    EXPECT_EQ(train, expected) << "chunks of " << chunk << " bytes";
  }
}

TEST_F(TokenizeFilesTest, LongFilesAreReadInParts) {
  std::string text;  // has documents that end at, before and after the end of a part
  while (text.size() < (size_t{1} << 20)) text += std::string(text.size() % 97, 'x') + "\u20AC" + "\n\n";
  Write("a", text);
  std::string joined;
  for (const std::string& document :
       Tokenized({"a"}, {.tokenizer = Files(), .document_end = DocumentEnd::kBlankLine, .chunk = 32})) {
    EXPECT_THAT(document, ::testing::EndsWith("\u20AC\n"));
    EXPECT_EQ(std::count(document.begin(), document.end(), '\n'), 1);
    joined += document + "\n";
  }
  EXPECT_EQ(joined, text);
  const std::string one_word(size_t{1} << 20, 'x');
  Write("word", one_word + "\xE2\x82\xAC");
  EXPECT_THAT(Tokenized({"word"}, {.tokenizer = Files(), .chunk = 1000}), ElementsAre(one_word + "\u20AC"));
}

TEST_F(TokenizeFilesTest, NamesThePlaceOfAnError) {
  Write("vocab.txt", "[UNK]\na\n");
  Write("good", "a");
  Write("bad", std::string(300, 'a') + "\xE9");
  TokenizeOptions options = {.folder = Path("out"), .tokenizer = Files("vocab.txt"), .chunk = 64};
  EXPECT_EQ(std::string(TokenizeFiles({Path("good"), Path("bad")}, options).status().message()),
            Path("bad") + ", counted from byte 128: not UTF-8 at byte 172 (0xE9)");
  EXPECT_FALSE(Exists(Path("out")));
  EXPECT_FALSE(Exists(Path("out.tmp")));
  options.document_end = DocumentEnd::kEndOfText;
  EXPECT_THAT(TokenizeFiles({Path("good")}, options).status().message(), HasSubstr("the tokenizer has no end token"));
  EXPECT_THAT(LearnFromBeginnings({}, 8000).status().message(), HasSubstr("not from standard input"));
}

}  // namespace
}  // namespace weft
