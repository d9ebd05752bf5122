#include <gtest/gtest.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "weft/base/file.h"
#include "weft/text/tokenizers/load_tokenizer.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

TEST(TokenizerFolderTest, HasOneTokenizer) {
  const std::string folder = testing::TempDir() + "tokenizers/one";
  EXPECT_TRUE(CheckTokenizerFolder(folder, false).ok());
  ASSERT_TRUE(WriteTokenizerFolder(folder, {"tokenizer.json", "{\"type\": \"byte\"}"}).ok());
  EXPECT_TRUE(LoadTokenizer(folder).ok());
  EXPECT_EQ(
      CheckTokenizerFolder(folder, false).message(),
      absl::StrCat("out: ", folder, " has files already, such as tokenizer.json; overwrite replaces a tokenizer"));
  EXPECT_TRUE(CheckTokenizerFolder(folder, true).ok());
  ASSERT_TRUE(WriteTokenizerFolder(folder, {"vocab.txt", "[UNK]\na\n"}).ok());
  EXPECT_FALSE(fs::exists(folder + "/tokenizer.json"));
  EXPECT_EQ((*LoadTokenizer(folder))->vocabulary_size(), 2);
}

TEST(TokenizerFolderTest, KeepsOtherFiles) {
  const std::string folder = testing::TempDir() + "tokenizers/model";
  fs::create_directories(folder);
  EXPECT_TRUE(CheckTokenizerFolder(folder, false).ok());  // an empty folder
  ASSERT_TRUE(WriteFile(folder + "/config.json", {"{}"}).ok());
  EXPECT_FALSE(CheckTokenizerFolder("/proc/nothing/tokenizer", false).ok());
  EXPECT_FALSE(CheckTokenizerFolder(folder + "/config.json/tokenizer", false).ok());
  const absl::Status status = CheckTokenizerFolder(folder, true);
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(status.message(), absl::StrCat("out: ", folder, " has config.json, which is not a file of a tokenizer"));
  EXPECT_EQ(CheckTokenizerFolder(folder + "/config.json", true).message(),
            absl::StrCat("out: ", folder, "/config.json is not a folder"));
}

}  // namespace
}  // namespace weft
