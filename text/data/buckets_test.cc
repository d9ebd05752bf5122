#include "weft/text/data/buckets.h"

#include <algorithm>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

using testing::ElementsAre;

TEST(BucketLengthsTest, AreTheMultiplesThatHaveExamples) {
  EXPECT_THAT(BucketLengths({1, 8, 9, 30}, {}, /*rows=*/1), ElementsAre(8, 16, 32));
  EXPECT_THAT(BucketLengths({}, {}, /*rows=*/1), ElementsAre());
  EXPECT_THAT(BucketLengths({0}, {}, /*rows=*/1), ElementsAre(8));
}

TEST(BucketLengthsTest, FewExamplesGoToTheNextLongerBucket) {
  EXPECT_THAT(BucketLengths({1, 9, 10, 30}, {}, /*rows=*/4), ElementsAre(16, 32));
  EXPECT_THAT(BucketLengths({1, 2, 3, 4, 30}, {}, /*rows=*/4), ElementsAre(8, 32)) << "the last one stays";
}

// So another validation text changes no training batch.
TEST(BucketLengthsTest, ExamplesThatAreHeldOutOnlyAddALongerBucket) {
  EXPECT_THAT(BucketLengths({1, 8, 9, 30}, {18, 18, 18, 2}, /*rows=*/4), ElementsAre(8, 32));
  EXPECT_THAT(BucketLengths({1, 8, 9, 30}, {33, 70}, /*rows=*/1), ElementsAre(8, 16, 32, 72));
}

TEST(BucketLengthsTest, StayWithinTheLimit) {
  EXPECT_THAT(BucketLengths({3, 10}, {}, /*rows=*/1, /*longest=*/10), ElementsAre(8, 10));
}

class BucketBatchesTest : public testing::Test {
 protected:
  // Returns the examples of all batches, and checks each batch.
  std::vector<int32_t> Examples(const BucketBatches& batches) const {
    std::vector<int32_t> all;
    for (int64_t i = 0; i < batches.size(); ++i) {
      const BucketBatch batch = batches[i];
      EXPECT_GE(batch.examples.size(), 1);
      EXPECT_LE(batch.examples.size(), 3);
      for (const int32_t example : batch.examples) {
        EXPECT_EQ(batch.bucket, lengths_[static_cast<size_t>(example)] <= 8 ? 0 : 1);
        all.push_back(example);
      }
    }
    return all;
  }

  const std::vector<int64_t> lengths_ = {3, 12, 8, 9, 1, 16, 2, 2, 14, 5};
  BucketBatches batches_{{8, 16}, lengths_, 3};
};

TEST_F(BucketBatchesTest, HaveEachExampleOnce) {
  EXPECT_EQ(batches_.size(), 4);  // 6 short ones, 4 long ones
  EXPECT_THAT(Examples(batches_), ElementsAre(0, 2, 4, 6, 7, 9, 1, 3, 5, 8));
  batches_.AtStep(1, 0);
  std::vector<int32_t> all = Examples(batches_);
  EXPECT_FALSE(std::is_sorted(all.begin(), all.end()));
  std::sort(all.begin(), all.end());
  EXPECT_THAT(all, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
}

TEST_F(BucketBatchesTest, AreShuffledBySeedAndStepAlone) {
  std::set<std::vector<int32_t>> orders;
  for (int64_t epoch = 0; epoch < 8; ++epoch) {
    batches_.AtStep(1, 4 * epoch);
    orders.insert(Examples(batches_));
  }
  EXPECT_EQ(orders.size(), 8);
  const BucketBatch third = batches_.AtStep(1, 14);  // the third of the fourth epoch
  BucketBatches others({8, 16}, lengths_, 3);
  EXPECT_EQ(third.examples, others.AtStep(1, 14).examples);
  EXPECT_NE(third.examples, others.AtStep(1, 2).examples);
  EXPECT_EQ(orders.count(Examples(batches_)), 1) << "whatever was shuffled before";
  batches_.AtStep(2, 12);
  EXPECT_EQ(orders.count(Examples(batches_)), 0);
}

}  // namespace
}  // namespace weft
