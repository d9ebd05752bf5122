// Lists of folders, their errors, and reading ahead.
#include "weft/text/data/token_sources.h"

#include <filesystem>
#include <fstream>
#include <numeric>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/base/file.h"
#include "weft/text/data/token_files.h"
#include "weft/text/tokenizers/character_tokenizer.h"
#include "weft/text/tokenizers/load_tokenizer.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

class TokenSourcesTest : public testing::Test {
 protected:
  TokenSourcesTest()
      : folder_(testing::TempDir() + "/" + testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }

  // Writes `size` tokens: first, first + 1, ..., first + 99, first, ...
  void Write(const std::string& name, int32_t first, int64_t size,
             const std::string& json = ByteTokenizer::ToJson()) const {
    TokenFileWriter writer = *TokenFileWriter::Create(Path(name), {{"tokenizer.json", json}});
    for (int64_t i = 0; i < size; ++i) ASSERT_TRUE(writer.Add({static_cast<int32_t>(first + i % 100)}).ok());
    ASSERT_TRUE(writer.Finish().ok());
  }

  std::string folder_;
};

// Returns the fraction of windows whose tokens are below 100.
double FractionBelow100(const TokenSources& sources) {
  TokenBatch batch;
  EXPECT_TRUE(sources.Sample({.rows = 20'000, .context = 8, .random = {.seed = 5}}, &batch).ok());
  double below = 0;
  for (size_t row = 0; row < 20'000; ++row) below += batch.tokens[8 * row] < 100;
  return below / 20'000;
}

TEST_F(TokenSourcesTest, ReadsWeights) {
  Write("a", 0, 2000);
  Write("b,c:2", 100, 6000);
  const std::string a = Path("a"), b = Path("b,c:2");
  EXPECT_TRUE(TokenSources::Names(a));
  EXPECT_TRUE(TokenSources::Names(b));
  EXPECT_TRUE(TokenSources::Names(a + ":2," + a));
  EXPECT_FALSE(TokenSources::Names(""));
  EXPECT_FALSE(TokenSources::Names(folder_));
  EXPECT_EQ(FractionBelow100(*TokenSources::Open(a, 8)), 1);
  EXPECT_EQ(FractionBelow100(*TokenSources::Open(b, 8)), 0);
  std::filesystem::rename(b, Path("b"));
  const double tolerance = 0.015;  // more than four standard deviations
  EXPECT_NEAR(FractionBelow100(*TokenSources::Open(a + ":0.7," + Path("b") + ":0.3", 8)), 0.7, tolerance);
  EXPECT_NEAR(FractionBelow100(*TokenSources::Open(a + "," + Path("b"), 8)), 0.25, tolerance);
  const TokenSources both = *TokenSources::Open(a + "," + Path("b"), 8);
  EXPECT_EQ(both.size(DataSplit::kTrain), 7200);
  EXPECT_EQ(both.tokenizer(), a);
}

TEST_F(TokenSourcesTest, TheFingerprintDependsOnTokensAndWeights) {
  Write("a", 0, 2000);
  Write("b", 1, 2000);
  Write("copy", 0, 2000);
  const auto fingerprint = [&](const std::string& data) { return TokenSources::Open(data, 8)->fingerprint(); };
  const std::string a = Path("a"), b = Path("b");
  EXPECT_EQ(fingerprint(a), fingerprint(Path("copy")));
  EXPECT_NE(fingerprint(a), fingerprint(b));
  EXPECT_NE(fingerprint(a + ":1," + b + ":1"), fingerprint(a + ":1," + b + ":2"));
}

TEST_F(TokenSourcesTest, SaysWhatIsWrongWithAList) {
  Write("a", 0, 2000);
  Write("short", 0, 80);
  Write("other", 0, 2000, " " + ByteTokenizer::ToJson());
  const std::string a = Path("a");
  const auto error = [&](const std::string& data) {
    return std::string(TokenSources::Open(data, 8).status().message());
  };
  EXPECT_THAT(error(a + ":1," + a), HasSubstr("either all folders have a weight or none has one"));
  EXPECT_THAT(error(a + ":0"), HasSubstr("the weight of " + a + " is 0, wanted a positive number"));
  EXPECT_THAT(error(a + ":nan"), HasSubstr("is nan, wanted a positive number"));
  EXPECT_THAT(error(a + "," + Path("missing")), HasSubstr("missing/index.json: No such file"));
  EXPECT_THAT(error(a + "," + Path("other")), HasSubstr("other has another tokenizer than " + a));
  EXPECT_THAT(error(Path("short")),
              HasSubstr("is too short for a context of 8: it has 80 tokens, of which the last 8"));
}

TEST_F(TokenSourcesTest, ReadingAheadGivesTheSameWindows) {
  Write("a", 0, 3000);
  const TokenSources sources = *TokenSources::Open(Path("a"), 16);
  const auto options = [](uint32_t step, DataSplit split = DataSplit::kTrain) {
    return WindowOptions{.split = split, .rows = 3, .context = 16, .random = {.seed = 2, .step = step}};
  };
  TokenBatch expected, batch;
  {
    ReadAhead ahead(&sources);
    for (uint32_t step = 0; step < 500; ++step) {
      const bool evaluates = step % 50 == 10;  // then the guess of the next batch is wrong
      if (evaluates) {
        ASSERT_TRUE(ahead.Take(options(step, DataSplit::kValidation), options(step), &batch).ok());
      }
      ASSERT_TRUE(ahead.Take(options(step), options(step + 1), &batch).ok());
      EXPECT_TRUE(sources.Sample(options(step), &expected).ok());
      ASSERT_EQ(batch.tokens, expected.tokens) << step;
      ASSERT_EQ(batch.targets, expected.targets) << step;
    }
  }
  for (int i = 0; i < 100; ++i) ReadAhead unused(&sources);
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(ReadAhead(&sources).Take(options(1), options(2), &batch).ok());
}

TEST_F(TokenSourcesTest, ReadingAheadReportsAFileThatBecameShorter) {
  Write("a", 0, 3000);
  const TokenSources sources = *TokenSources::Open(Path("a"), 16);
  ReadAhead ahead(&sources);
  const WindowOptions options = {.rows = 3, .context = 16};
  TokenBatch batch;
  std::filesystem::resize_file(Path("a/tokens-00000.bin"), 10);
  for (int i = 0; i < 2; ++i) {  // the first windows are drawn by Take, the others on the thread
    EXPECT_THAT(std::string(ahead.Take(options, options, &batch).message()),
                HasSubstr("tokens-00000.bin ends at byte"));
  }
}

}  // namespace
}  // namespace weft
