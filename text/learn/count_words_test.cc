#include "weft/text/learn/count_words.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "weft/base/file.h"

namespace weft {
namespace {

class CountWordsTest : public testing::Test {
 protected:
  CountWordsTest() : folder_(testing::TempDir() + testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::create_directories(folder_);
  }
  std::string Write(const std::string& name, const std::string& text) const {
    EXPECT_TRUE(WriteFile(folder_ + "/" + name, {text}).ok());
    return folder_ + "/" + name;
  }

  const std::string folder_;
};

// Each chunk is a word.
void Chunks(absl::string_view text, EmitWord emit) { emit(text); }

using Words = std::vector<std::pair<std::string, int64_t>>;

TEST_F(CountWordsTest, ChunksEndBeforeASpaceAfterAWord) {
  const auto counts = CountWords({Write("a", "a b  c\n\n a b\td\u3000 e"), Write("b", "a\n")}, Chunks, 1);
  ASSERT_TRUE(counts.ok()) << counts.status();
  EXPECT_EQ(counts->words, (Words{{"\td\u3000 e", 1}, {"\n", 3}, {"  c", 1}, {" a", 1}, {" b", 2}, {"a", 2}}));
  EXPECT_EQ(counts->bytes, 21);
}

TEST_F(CountWordsTest, TheNumberOfThreadsChangesNothing) {
  std::string text, one_line;
  for (int i = 0; i < 500'000; ++i) absl::StrAppend(&text, " w", i % 977, i % 13 == 0 ? "\n" : "");
  for (int i = 0; i < 500'000; ++i) absl::StrAppend(&one_line, " v", i % 977);
  const std::vector<std::string> paths = {Write("a", text), Write("b", one_line), Write("empty", "")};
  ASSERT_GT(text.size(), size_t{2} << 20);  // several blocks
  const auto one = CountWords(paths, Chunks, 1), three = CountWords(paths, Chunks, 3);
  ASSERT_TRUE(one.ok() && three.ok());
  EXPECT_EQ(one->words, three->words);
  EXPECT_EQ(one->bytes, text.size() + one_line.size());
  EXPECT_EQ(one->words.size(), 1 + 2 * 977);
  int64_t words = 0;
  for (const auto& [word, count] : one->words) words += word == "\n" ? 0 : count;
  EXPECT_EQ(words, 1'000'000);
}

TEST_F(CountWordsTest, NamesTheFirstLineThatIsNotUtf8) {
  std::string text;
  for (int i = 0; i < 300'000; ++i) absl::StrAppend(&text, "line ", i % 10, i >= 200'000 ? "\xE9" : "", "\n");
  const std::string path = Write("latin1", text);
  for (const int threads : {1, 3}) {
    EXPECT_EQ(CountWords({path}, Chunks, threads).status().message(),
              absl::StrCat(path, ", line 200001: not UTF-8 at byte 6 (0xE9)"));
  }
  EXPECT_EQ(CountWords({Write("b", "ok"), folder_ + "/missing"}, Chunks, 2).status().code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace weft
