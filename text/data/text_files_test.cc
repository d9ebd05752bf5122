#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "weft/text/data/lines.h"

namespace weft {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

class TextFilesTest : public testing::Test {
 protected:
  TextFilesTest() : folder_(testing::TempDir() + "/text_files_test") {
    fs::remove_all(folder_);
    fs::create_directories(folder_ + "/texts/deeper");
    fs::create_directories(folder_ + "/nothing");
    for (const char* name : {"z.txt", "a,b.txt", "texts/two", "texts/one", "texts/.hidden", "texts/deeper/three"}) {
      std::ofstream(folder_ + "/" + name) << "text of " << name;
    }
  }

  const std::string folder_;
};

TEST_F(TextFilesTest, AFolderStandsForItsFilesByName) {
  const std::string list = folder_ + "/z.txt," + folder_ + "/texts";
  const auto paths = ListTexts(list);
  ASSERT_TRUE(paths.ok()) << paths.status();
  EXPECT_THAT(*paths, ElementsAre(folder_ + "/z.txt", folder_ + "/texts/one", folder_ + "/texts/two"));
  const auto texts = ReadTexts(list);
  ASSERT_TRUE(texts.ok()) << texts.status();
  ASSERT_EQ(texts->size(), 3);
  EXPECT_EQ((*texts)[1].text, "text of texts/one");
}

TEST_F(TextFilesTest, AListThatExistsIsOnePath) {
  const auto paths = ListTexts(folder_ + "/a,b.txt");
  ASSERT_TRUE(paths.ok()) << paths.status();
  EXPECT_THAT(*paths, ElementsAre(folder_ + "/a,b.txt"));
}

TEST_F(TextFilesTest, WhatCannotBeReadIsAnError) {
  EXPECT_THAT(std::string(ListTexts(folder_ + "/nothing").status().message()), HasSubstr("the folder has no files"));
  EXPECT_TRUE(absl::IsNotFound(ReadTexts(folder_ + "/z.txt," + folder_ + "/missing").status()));
}

TEST(ReadTextTest, NamesFileAndFault) {
  const std::string folder = testing::TempDir();
  EXPECT_EQ(ReadText(folder + "/missing.txt").status().code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(ReadText(folder).ok());
  const std::string path = folder + "/text.txt";
  std::ofstream(path).close();
  EXPECT_EQ(ReadText(path).status().message(), path + ": the file is empty");
  std::ofstream(path) << "caf\xE9";
  EXPECT_EQ(ReadText(path).status().message(), path + ": not UTF-8 at byte 3 (0xE9)");
  std::ofstream(path) << "café";
  EXPECT_EQ(*ReadText(path), "café");
}

}  // namespace
}  // namespace weft
