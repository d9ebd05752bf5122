// Writes and reads token files, also damaged ones.
#include "weft/text/data/token_files.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/base/file.h"
#include "weft/text/tokenizers/character_tokenizer.h"
#include "weft/text/tokenizers/load_tokenizer.h"

namespace weft {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TokenFilesTest : public testing::Test {
 protected:
  TokenFilesTest() : folder_(testing::TempDir() + "/" + testing::UnitTest::GetInstance()->current_test_info()->name()) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    EXPECT_TRUE(WriteFile(Path("tokenizer.json"), {ByteTokenizer::ToJson()}).ok());
    std::string words;
    for (int i = 0; i < 70'000; ++i) words += absl::StrCat("word", i, "\n");
    fs::create_directories(Path("words"));
    EXPECT_TRUE(WriteFile(Path("words/vocab.txt"), {"[UNK]\n", words}).ok());
  }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }

  // Writes documents of the given lengths in shards of 7 tokens. Token i is `step` · i modulo `modulus`.
  absl::Status Write(const std::string& name, const std::string& tokenizer, const std::vector<int64_t>& lengths,
                     int32_t step, int32_t modulus) const {
    absl::StatusOr<TokenFileWriter> writer =
        TokenFileWriter::Create(Path(name), *ReadTokenizerFiles(tokenizer), /*shard_tokens=*/7);
    if (!writer.ok()) return writer.status();
    for (const int64_t length : lengths) {
      for (int64_t i = 0; i < length; ++i) {
        const auto token = static_cast<int32_t>(writer->tokens() * step % modulus);
        if (const absl::Status added = writer->Add({token}); !added.ok()) return added;
      }
      writer->EndDocument();
    }
    return writer->Finish();
  }

  std::string folder_;
};

std::vector<int32_t> Window(const TokenSource& source, DataSplit split, int64_t begin, size_t size) {
  std::vector<int32_t> window(size);
  EXPECT_TRUE(source.Read(split, begin, absl::MakeSpan(window)).ok());
  return window;
}

std::vector<int32_t> Documents(const TokenSource& source, DataSplit split, int64_t begin, size_t size) {
  std::vector<int32_t> documents(size);
  EXPECT_TRUE(source.Documents(split, begin, absl::MakeSpan(documents)).ok());
  return documents;
}

TEST_F(TokenFilesTest, ReadsWhatWasWrittenAcrossShards) {
  for (const auto& [tokenizer, step, modulus, id_bytes] :
       {std::tuple{Path("tokenizer.json"), 1, 256, 2}, std::tuple{Path("words"), 701, 70'001, 4}}) {
    const std::string name = absl::StrCat("corpus", id_bytes);
    ASSERT_TRUE(Write(name, tokenizer, {3, 0, 5, 22, 70}, step, modulus).ok());
    const absl::StatusOr<TokenFiles> files = TokenFiles::Open(Path(name));
    ASSERT_TRUE(files.ok()) << files.status();
    EXPECT_EQ(files->size(DataSplit::kTrain), 90);
    EXPECT_EQ(files->size(DataSplit::kValidation), 10);
    EXPECT_EQ(files->documents(), 4) << "a document without tokens does not count";
    EXPECT_EQ(files->index().id_bytes(), id_bytes);
    EXPECT_EQ(fs::file_size(Path(name + "/tokens-00000.bin")), 7 * id_bytes);
    EXPECT_EQ(fs::file_size(Path(name + "/tokens-00014.bin")), 2 * id_bytes);
    for (int64_t begin = 0; begin <= 60; ++begin) {
      std::vector<int32_t> expected(30);
      for (size_t i = 0; i < 30; ++i) expected[i] = (static_cast<int32_t>(begin) + i) * step % modulus;
      EXPECT_EQ(Window(*files, DataSplit::kTrain, begin, 30), expected);
    }
    EXPECT_EQ(Window(*files, DataSplit::kValidation, 9, 1)[0], 99 * step % modulus);
    EXPECT_TRUE(files->Verify().ok());
  }
}

TEST_F(TokenFilesTest, NumbersDocumentsFromTheWindowsFirst) {
  ASSERT_TRUE(Write("corpus", Path("tokenizer.json"), {3, 5, 1, 71, 16, 4}, 1, 256).ok());
  const TokenFiles files = *TokenFiles::Open(Path("corpus"));
  EXPECT_THAT(Documents(files, DataSplit::kTrain, 0, 10), ElementsAre(0, 0, 0, 1, 1, 1, 1, 1, 2, 3));
  EXPECT_THAT(Documents(files, DataSplit::kTrain, 7, 4), ElementsAre(0, 1, 2, 2));
  EXPECT_THAT(Documents(files, DataSplit::kTrain, 78, 4), ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(Documents(files, DataSplit::kValidation, 4, 6), ElementsAre(0, 0, 1, 1, 1, 1));
}

// The corpus has more documents than Documents keeps in memory, so the search for a document reads documents.bin.
TEST_F(TokenFilesTest, FindsTheDocumentsOfAWindowAmongMany) {
  TokenFileWriter writer = *TokenFileWriter::Create(Path("corpus"), {{"tokenizer.json", ByteTokenizer::ToJson()}});
  std::vector<int32_t> number;  // of each token's document
  for (int32_t document = 0; number.size() < 1'000'000; ++document) {
    const std::vector<int32_t> ids(static_cast<size_t>(1 + document * 7 % 5), document % 256);
    ASSERT_TRUE(writer.Add(ids).ok());
    writer.EndDocument();
    number.insert(number.end(), ids.size(), document);
  }
  ASSERT_TRUE(writer.Finish().ok());
  const TokenFiles files = *TokenFiles::Open(Path("corpus"));
  for (int64_t begin = 0; begin + 400 < 900'000; begin += 997) {
    const std::vector<int32_t> documents = Documents(files, DataSplit::kTrain, begin, 400);
    for (size_t i = 0; i < 400; ++i) {
      ASSERT_EQ(documents[i], number[static_cast<size_t>(begin) + i] - number[static_cast<size_t>(begin)]);
    }
  }
}

TEST_F(TokenFilesTest, AShardThatBecameShorterIsAnError) {
  ASSERT_TRUE(Write("corpus", Path("tokenizer.json"), {100}, 1, 256).ok());
  const TokenFiles files = *TokenFiles::Open(Path("corpus"));
  ASSERT_EQ(truncate(Path("corpus/tokens-00002.bin").c_str(), 5), 0);
  std::vector<int32_t> window(7);
  EXPECT_TRUE(files.Read(DataSplit::kTrain, 7, absl::MakeSpan(window)).ok());
  EXPECT_THAT(files.Read(DataSplit::kTrain, 10, absl::MakeSpan(window)).message(),
              HasSubstr("tokens-00002.bin ends at byte 5"));
}

TEST_F(TokenFilesTest, OpensWithoutShardsIfTheCallerAllowsIt) {
  ASSERT_TRUE(Write("corpus", Path("tokenizer.json"), {30}, 1, 256).ok());
  const TokenFiles whole = *TokenFiles::Open(Path("corpus"), MissingShards::kAllow);
  EXPECT_EQ(whole.missing_files(), 0);
  for (const char* name : {"corpus/tokens-00001.bin", "corpus/tokens-00003.bin"}) fs::remove(Path(name));
  EXPECT_EQ(TokenFiles::Open(Path("corpus")).status().code(), absl::StatusCode::kNotFound);
  const TokenFiles files = *TokenFiles::Open(Path("corpus"), MissingShards::kAllow);
  EXPECT_EQ(files.missing_files(), 2);
  EXPECT_EQ(files.Fingerprint(), whole.Fingerprint());
  EXPECT_EQ(files.Verify().code(), absl::StatusCode::kNotFound);
  for (const DataSplit split : {DataSplit::kTrain, DataSplit::kValidation}) {
    const int64_t first = split == DataSplit::kTrain ? 0 : 27, tokens = files.size(split);
    for (int64_t begin = 0; begin < tokens; ++begin) {
      for (int64_t size = 1; begin + size <= tokens; ++size) {
        int64_t missing = 0;  // the first shard that is missing
        for (int64_t i = first + begin + size - 1; i >= first + begin; --i) {
          if (i / 7 == 1 || i / 7 == 3) missing = i / 7;
        }
        std::vector<int32_t> window(static_cast<size_t>(size));
        for (const absl::Status& status :
             {files.Read(split, begin, absl::MakeSpan(window)), files.CheckPresent(split, begin, size)}) {
          ASSERT_EQ(status.ok(), missing == 0) << begin << ", " << size << ": " << status;
          if (missing == 0) continue;
          EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
          EXPECT_THAT(status.message(), HasSubstr(absl::StrCat("tokens-0000", missing, ".bin: No such file")));
        }
        const std::vector<int32_t> expected = Window(whole, split, begin, window.size());
        EXPECT_TRUE(missing > 0 || window == expected);
      }
    }
  }
  fs::remove(Path("corpus/documents.bin"));
  EXPECT_EQ(TokenFiles::Open(Path("corpus"), MissingShards::kAllow).status().code(), absl::StatusCode::kNotFound);
}

// Returns the contents of an index without the checksums of blocks, as earlier versions wrote it.
std::string WithoutBlocks(const std::string& index) {
  auto json = nlohmann::ordered_json::parse(index);
  json["documents"].erase("blocks");
  for (auto& shard : json["shards"]) shard.erase("blocks");
  return json.dump(2) + "\n";
}

TEST_F(TokenFilesTest, FindsEveryFlippedBit) {
  ASSERT_TRUE(Write("corpus", Path("tokenizer.json"), {3, 5, 9}, 1, 256).ok());
  for (const bool old_index : {false, true}) {
    const std::string index = Path("corpus/index.json");
    if (old_index) {
      ASSERT_TRUE(WriteFile(index, {WithoutBlocks(*ReadFile(index))}).ok());
    }
    for (const std::string name : {"tokens-00000.bin", "tokens-00001.bin", "tokens-00002.bin", "documents.bin"}) {
      const std::string path = Path("corpus/" + name), whole = *ReadFile(path);
      for (size_t bit = 0; bit < 8 * whole.size(); ++bit) {
        std::string damaged = whole;
        damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
        ASSERT_TRUE(WriteFile(path, {damaged}).ok());
        const absl::StatusOr<TokenFiles> files = TokenFiles::Open(Path("corpus"));
        ASSERT_EQ(files.ok(), name != "documents.bin") << files.status();
        std::vector<int32_t> all(15);  // the training tokens, which all shards have
        const absl::Status read = files.ok() ? files->Read(DataSplit::kTrain, 0, absl::MakeSpan(all)) : files.status();
        for (const absl::Status& found : {read, files.ok() ? files->Verify() : read}) {
          ASSERT_EQ(found.code(), absl::StatusCode::kDataLoss) << name << ", bit " << bit;
          ASSERT_THAT(found.message(), HasSubstr(path + ": its checksum is "));
        }
      }
      ASSERT_TRUE(WriteFile(path, {whole}).ok());
    }
    ASSERT_TRUE(TokenFiles::Open(Path("corpus"))->Verify().ok());
  }
}

// Only the damaged block can't be read. Its shard has 2^20 ids in 2 MiB, and 8 blocks.
TEST_F(TokenFilesTest, ReadsBesideADamagedBlock) {
  TokenFileWriter writer = *TokenFileWriter::Create(Path("corpus"), {{"tokenizer.json", ByteTokenizer::ToJson()}});
  std::vector<int32_t> ids(1 << 20);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(i * i % 251);
  ASSERT_TRUE(writer.Add(ids).ok());
  ASSERT_TRUE(writer.Finish().ok());
  const std::string path = Path("corpus/tokens-00000.bin");
  std::fstream(path, std::ios::binary | std::ios::in | std::ios::out).seekp(kTokenBlock + 5).put('\1');
  const TokenFiles files = *TokenFiles::Open(Path("corpus"));
  constexpr int64_t kIds = kTokenBlock / 2;  // of a block
  EXPECT_EQ(Window(files, DataSplit::kTrain, kIds - 100, 100), std::vector(&ids[kIds - 100], &ids[kIds]));
  EXPECT_EQ(Window(files, DataSplit::kTrain, 2 * kIds, 100), std::vector(&ids[2 * kIds], &ids[2 * kIds + 100]));
  std::vector<int32_t> window(2);
  for (const int64_t begin : {kIds - 1, kIds + 1000, 2 * kIds - 1}) {
    const absl::Status status = files.Read(DataSplit::kTrain, begin, absl::MakeSpan(window));
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(status.message(), HasSubstr(path + ": the checksum of its bytes 262144 to 524287 is "));
  }
}

TEST_F(TokenFilesTest, RefusesDamagedFolders) {
  ASSERT_TRUE(Write("corpus", Path("tokenizer.json"), {3, 5, 9}, 1, 256).ok());
  const auto error = [&] { return std::string(TokenFiles::Open(Path("corpus")).status().message()); };
  const auto damage = [&](const std::string& name, const std::string& from, const std::string& to) {
    std::string contents = *ReadFile(Path("corpus/" + name));
    const size_t at = contents.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    const std::string damaged = std::string(contents).replace(at, from.size(), to);
    EXPECT_TRUE(WriteFile(Path("corpus/" + name), {damaged}).ok());
    std::string message = error();
    EXPECT_TRUE(WriteFile(Path("corpus/" + name), {contents}).ok());
    return message;
  };
  EXPECT_THAT(damage("index.json", "\"version\": 1", "\"version\": 2"), HasSubstr("version 2 is not supported"));
  EXPECT_THAT(damage("index.json", "\"tokens\": 7", "\"tokens\": 8"),
              HasSubstr("tokens-00000.bin has 14 bytes, but index.json gives it 16"));
  EXPECT_THAT(damage("index.json", "\"tokens\": 7", "\"tokens\": -7"), HasSubstr("'tokens' is -7, wanted 0 to"));
  EXPECT_THAT(damage("index.json", "\"count\": 3", "\"count\": 4"), HasSubstr("documents.bin has 24 bytes"));
  EXPECT_THAT(damage("index.json", "\"id_bytes\": 2", "\"id_bytes\": 4"), HasSubstr("'id_bytes' is 4, wanted 2"));
  EXPECT_THAT(damage("index.json", "\"tokens\": 7", "\"tokens\": 18446744073709551615"),
              HasSubstr("'tokens' is 18446744073709551615, wanted 0 to"));
  EXPECT_THAT(damage("index.json", "\"blocks\": \"", "\"blocks\": \"0"),
              HasSubstr("index.json: the checksums of documents.bin have 17 digits, wanted 16"));
  EXPECT_THAT(damage("index.json", "\"shards\"", "\"shard\""), HasSubstr("'shards' is not an array"));
  EXPECT_THAT(damage("tokenizer.json", "}", " }"), HasSubstr("the tokenizer's files changed after"));
  EXPECT_EQ(error(), "");
  fs::remove(Path("corpus/tokens-00001.bin"));
  EXPECT_THAT(error(), HasSubstr("tokens-00001.bin: No such file"));
  EXPECT_FALSE(TokenFiles::IsAt(Path("words")));
  EXPECT_EQ(TokenFiles::Open(Path("words")).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(TokenFilesTest, AFolderAppearsOnlyWhenItIsWhole) {
  {
    TokenFileWriter writer = *TokenFileWriter::Create(Path("corpus"), {{"tokenizer.json", ByteTokenizer::ToJson()}});
    ASSERT_TRUE(writer.Add({1, 2, 3}).ok());
    EXPECT_THAT(writer.Add({256}).message(), HasSubstr("id 256 is not in 0 .. 255"));
    EXPECT_FALSE(fs::exists(Path("corpus")));
    EXPECT_EQ(TokenFileWriter::Create(Path("corpus"), {{"tokenizer.json", ByteTokenizer::ToJson()}}).status().code(),
              absl::StatusCode::kFailedPrecondition)
        << "two writers of one folder";
  }
  EXPECT_FALSE(fs::exists(Path("corpus.tmp"))) << "a writer that did not finish leaves nothing";
  EXPECT_THAT(Write("corpus", Path("tokenizer.json"), {0}, 1, 256).message(), HasSubstr("there are no tokens"));
  fs::create_directories(Path("corpus.tmp"));  // as a killed process leaves it
  std::ofstream(Path("corpus.tmp/tokens-00007.bin")) << "old";
  ASSERT_TRUE(Write("corpus/", Path("tokenizer.json"), {20}, 1, 256).ok());
  EXPECT_FALSE(fs::exists(Path("corpus/tokens-00007.bin")));
  EXPECT_FALSE(fs::exists(Path("corpus.tmp")));
  EXPECT_EQ(Write("corpus", Path("tokenizer.json"), {20}, 1, 256).code(), absl::StatusCode::kAlreadyExists);
}

}  // namespace
}  // namespace weft
