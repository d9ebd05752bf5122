// Tests the data that each rank of a training of a GPT reads.
#include "weft/train/jobs/gpt_job.h"

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/parameters.h"
#include "weft/distributed/in_process.h"
#include "weft/distributed/index_range.h"
#include "weft/distributed/ranks.h"
#include "weft/options/hyperparameters.h"
#include "weft/text/data/token_files.h"
#include "weft/text/tokenizers/character_tokenizer.h"
#include "weft/train/step/task.h"

namespace weft {
namespace {

namespace fs = std::filesystem;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using Options = std::map<std::string, std::string>;

constexpr int64_t kMicroBatches = 4;

// A job on a folder of token files in shards of 100 tokens.
class GptJobTest : public testing::Test {
 protected:
  GptJobTest() : folder_(testing::TempDir() + "/" + testing::UnitTest::GetInstance()->current_test_info()->name()) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    TokenFileWriter writer = *TokenFileWriter::Create(
        folder_ + "/corpus", {{"tokenizer.json", ByteTokenizer::ToJson()}}, /*shard_tokens=*/100);
    for (int32_t i = 0; i < 3000; ++i) EXPECT_TRUE(writer.Add({i * 7 % 251}).ok());
    EXPECT_TRUE(writer.Finish().ok());
  }

  // Returns a job for one of `ranks`, which is prepared.
  absl::StatusOr<std::unique_ptr<GptJob>> Make(const Ranks& ranks, Options given = {}) const {
    Options defaults = {{"data", folder_ + "/corpus"},
                        {"layers", "1"},
                        {"heads", "1"},
                        {"width", "4"},
                        {"context", "8"},
                        {"batch", "6"},
                        {"micro-batches", "4"},
                        {"eval-batches", "2"},
                        {"input-noise", "0.2"},
                        {"steps", "3"}};
    given.merge(defaults);
    auto job = std::make_unique<GptJob>();
    job->set_ranks(ranks);
    absl::Status status = SetFromTexts(given, job->Table());
    if (status.ok()) status = job->Check(nullptr);
    Parameters parameters({.seed = 1});
    if (status.ok()) status = job->Prepare(&parameters);
    if (!status.ok()) return status;
    return job;
  }

  // Returns the error of the first batch on which a rank trains, or OK.
  absl::Status FirstError(const Ranks& ranks, const Options& given) const {
    const std::unique_ptr<GptJob> job = *Make(ranks, given);
    return job->Train(0, {RowsOf({ranks.rank(), ranks.size()}, kMicroBatches).begin, kMicroBatches}).status();
  }

  std::string folder_;
};

// Returns the numbers of all feeds of a batch.
std::vector<int32_t> Numbers(const TrainingBatch& batch) {
  std::vector<int32_t> all;
  for (const auto& [input, feed] : batch.feeds) {
    const Tensor tensor = *feed.As(input.type());
    const auto values = tensor.span<int32_t>();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

TEST_F(GptJobTest, EachRankHasTheTokensOfOne) {
  for (const std::string positions : {"anywhere", "by-row"}) {
    const Options given = {{"window-positions", positions}};
    const std::unique_ptr<GptJob> alone = *Make(Ranks(), given);
    std::map<std::pair<int64_t, int64_t>, std::vector<int32_t>> trained, validated;  // by step and index
    for (int64_t step = 0; step < 3; ++step) {
      for (int64_t i = 0; i < alone->validation_batches(); ++i) {
        validated[{step, i}] = Numbers(*alone->Validate(step, i));
      }
      for (int64_t i = 0; i < kMicroBatches; ++i) trained[{step, i}] = Numbers(*alone->Train(step, {i, kMicroBatches}));
    }
    EXPECT_NE((trained[{0, 0}]), (trained[{0, 1}]));
    for (const int size : {2, 3, 4}) {
      RunRanks(size, [&](Transport* transport) {
        const Ranks ranks(transport);
        const std::unique_ptr<GptJob> job = *Make(ranks, given);
        const IndexRange mine = RowsOf({ranks.rank(), size}, kMicroBatches);
        for (int64_t step = 0; step < 3; ++step) {
          for (int64_t i = ranks.rank(); i < job->validation_batches(); i += size) {
            EXPECT_EQ(Numbers(*job->Validate(step, i)), validated.at({step, i}));
          }
          for (int64_t i = mine.begin; i < mine.end; ++i) {
            EXPECT_EQ(Numbers(*job->Train(step, {i, kMicroBatches})), trained.at({step, i}));
          }
        }
      });
    }
  }
}

// A rank of two has three rows, whose windows of 9 tokens are each in one or two shards of 100 tokens.
TEST_F(GptJobTest, ARankNeedsTheShardsOfItsRowsOnly) {
  const std::unique_ptr<GptJob> alone = *Make(Ranks(), {{"steps", "1"}});
  std::vector<std::vector<int32_t>> expected;
  for (int64_t i = 0; i < kMicroBatches; ++i) expected.push_back(Numbers(*alone->Train(0, {i, kMicroBatches})));
  RunRanks(2, [&](Transport* transport) {
    const Ranks ranks(transport);
    const std::string copy = absl::StrCat(folder_, "/copy", ranks.rank());
    const Options no_evaluations = {{"data", copy}, {"steps", "1"}, {"eval-every", "0"}};
    std::vector<std::string> unneeded;
    for (int shard = 0; shard < 30; ++shard) {
      fs::remove_all(copy);
      fs::copy(folder_ + "/corpus", copy);
      const std::string path = absl::StrCat(copy, "/", ShardFile(static_cast<size_t>(shard)));
      fs::remove(path);
      const absl::Status error = FirstError(ranks, no_evaluations);
      if (error.ok()) {
        unneeded.push_back(path);
      } else {
        EXPECT_EQ(error.message(), absl::StrCat("step 1 needs a missing shard, one of 1: cannot open ", path,
                                                ": No such file or directory"));
      }
    }
    EXPECT_GE(unneeded.size(), 30 - 6);
    EXPECT_LT(unneeded.size(), 30);
    fs::copy(folder_ + "/corpus", copy, fs::copy_options::overwrite_existing);
    for (const std::string& path : unneeded) fs::remove(path);
    const std::unique_ptr<GptJob> job = *Make(ranks, no_evaluations);
    EXPECT_EQ(job->data(), alone->data());
    const IndexRange mine = RowsOf({ranks.rank(), 2}, kMicroBatches);
    for (int64_t i = mine.begin; i < mine.end; ++i) {
      EXPECT_EQ(Numbers(*job->Train(0, {i, kMicroBatches})), expected[static_cast<size_t>(i)]);
    }
  });
}

// Rank 0 of two has the rows 0 to 3 of 6, and rank 1 the others. The first 2,700 tokens are for training.
TEST_F(GptJobTest, WithWindowsByRowARankNeedsAPartOfTheShards) {
  const Options by_row = {{"window-positions", "by-row"}, {"eval-every", "0"}, {"steps", "300"}};
  const std::unique_ptr<GptJob> alone = *Make(Ranks(), by_row);
  RunRanks(2, [&](Transport* transport) {
    const Ranks ranks(transport);
    const std::string copy = absl::StrCat(folder_, "/copy", ranks.rank());
    fs::copy(folder_ + "/corpus", copy);
    const size_t first = ranks.first() ? 0 : 17, last = ranks.first() ? 18 : 27;  // 2,700 * 4 / 6 = 1,800
    for (size_t shard = 0; shard < 30; ++shard) {
      if (shard < first || shard > last) fs::remove(absl::StrCat(copy, "/", ShardFile(shard)));
    }
    Options given = by_row;
    given["data"] = copy;
    EXPECT_TRUE(FirstError(ranks, given).ok());
    const std::unique_ptr<GptJob> job = *Make(ranks, given);
    EXPECT_EQ(job->data(), alone->data());
    given["window-positions"] = "anywhere";
    EXPECT_THAT(FirstError(ranks, given).message(), HasSubstr("step 1 needs a missing shard, one of 1"));
  });
}

TEST_F(GptJobTest, TheFirstStepOrEvaluationThatNeedsAMissingShardIsFoundAtTheStart) {
  fs::remove(folder_ + "/corpus/tokens-00029.bin");  // the last tenth of the tokens is for validation
  EXPECT_EQ(Make(Ranks()).status().code(), absl::StatusCode::kNotFound) << "a process that trains alone needs all";
  RunRanks(2, [&](Transport* transport) {
    const Ranks ranks(transport);
    EXPECT_TRUE(FirstError(ranks, {{"eval-every", "0"}}).ok());
    EXPECT_THAT(FirstError(ranks, {{"eval-every", "2"}, {"eval-batches", "50"}}).message(),
                HasSubstr("the evaluation after step 2 needs a missing shard, one of 1: cannot open "));
    const std::unique_ptr<GptJob> job = *Make(ranks, {{"eval-every", "2"}, {"eval-batches", "50"}});
    EXPECT_THAT(job->Validate(0, ranks.rank()).status().message(), HasSubstr("the evaluation after step 0 needs "));
  });
  fs::remove(folder_ + "/corpus/tokens-00007.bin");
  RunRanks(2, [&](Transport* transport) {
    const absl::Status error = FirstError(Ranks(transport), {{"eval-every", "0"}, {"steps", "1000"}});
    EXPECT_THAT(std::string(error.message()),
                ContainsRegex("^step [0-9]+ needs a missing shard, one of 2: .*tokens-00007.bin"));
  });
}

}  // namespace
}  // namespace weft
