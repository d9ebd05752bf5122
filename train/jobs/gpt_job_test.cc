// Tests the data that each rank of a training of a GPT reads.
#include "weft/train/jobs/gpt_job.h"

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/hyperparameters.h"
#include "weft/core/parameters.h"
#include "weft/distributed/rank_threads.h"
#include "weft/distributed/ranks.h"
#include "weft/text/byte_tokenizer.h"
#include "weft/text/token_file_writer.h"
#include "weft/train/task.h"

namespace weft {
namespace {

constexpr int64_t kMicroBatches = 4;

// A job on a folder of token files in shards of 100 tokens.
class GptJobTest : public testing::Test {
 protected:
  GptJobTest() : folder_(testing::TempDir() + "/" + testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    TokenFileWriter writer = *TokenFileWriter::Create(
        folder_ + "/corpus", {{"tokenizer.json", ByteTokenizer::ToJson()}}, {.shard_tokens = 100});
    for (int32_t i = 0; i < 3000; ++i) EXPECT_TRUE(writer.Add({i * 7 % 251}).ok());
    EXPECT_TRUE(writer.Finish().ok());
  }

  // Returns a job for one of `ranks`, which is prepared.
  absl::StatusOr<std::unique_ptr<GptJob>> Make(const Ranks& ranks, std::map<std::string, std::string> more = {}) const {
    std::map<std::string, std::string> given = {{"data", folder_ + "/corpus"},
                                                {"layers", "1"},
                                                {"heads", "1"},
                                                {"width", "4"},
                                                {"context", "8"},
                                                {"batch", "6"},
                                                {"micro-batches", "4"},
                                                {"eval-batches", "2"},
                                                {"input-noise", "0.2"},
                                                {"steps", "3"}};
    given.merge(more);
    auto job = std::make_unique<GptJob>();
    job->set_ranks(ranks);
    absl::Status status = SetFromTexts(given, job->Table());
    if (status.ok()) status = job->Check(nullptr);
    Parameters parameters({.seed = 1});
    if (status.ok()) status = job->Prepare(&parameters);
    if (!status.ok()) return status;
    return job;
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
  const std::unique_ptr<GptJob> alone = *Make(Ranks());
  std::map<std::pair<int64_t, int64_t>, std::vector<int32_t>> trained, validated;  // by step and index
  for (int64_t step = 0; step < 3; ++step) {
    for (int64_t i = 0; i < alone->validation_batches(); ++i) validated[{step, i}] = Numbers(*alone->Validate(step, i));
    for (int64_t i = 0; i < kMicroBatches; ++i) trained[{step, i}] = Numbers(*alone->Train(step, {i, kMicroBatches}));
  }
  EXPECT_NE((trained[{0, 0}]), (trained[{0, 1}]));
  for (const int size : {2, 3, 4}) {
    RunRanks(size, [&](Transport* transport) {
      const Ranks ranks(transport);
      const std::unique_ptr<GptJob> job = *Make(ranks);
      const RowRange mine = RowsOf({ranks.rank(), size}, kMicroBatches);
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

}  // namespace
}  // namespace weft
