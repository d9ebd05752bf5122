// Tests that a step of several micro-batches makes the update of the whole batch, that its sums are a fixed tree, and
// that a step whose numbers are not finite changes nothing.
#include "weft/train/step/training_step.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/base/status.h"
#include "weft/distributed/index_range.h"
#include "weft/tests/ranks/small_training.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

double LargestDifference(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = a.size() == b.size() ? 0 : std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) largest = std::max(largest, std::fabs(a[i] - b[i]));
  return largest;
}

// With SGD and a rate of 1, the new weights are the old ones minus the gradients.
TEST(TrainingStepTest, MicroBatchesHaveTheGradientsOfTheWholeBatch) {
  for (const Family& family : kFamilies) {
    Training whole(family, kF64, {});
    ASSERT_TRUE(whole.Create(Sgd({})).ok());
    const std::vector<double> before = whole.Weights();
    const absl::StatusOr<StepResult> expected = whole.Run(0, 1);
    ASSERT_TRUE(expected.ok()) << expected.status();
    EXPECT_TRUE(expected->updated);
    EXPECT_GT(LargestDifference(before, whole.Weights()), 1e-3);
    for (const int64_t count : {2, 3, 4, 5, 6, 7, 8}) {
      SCOPED_TRACE(std::string(family.name) + ", micro-batches: " + std::to_string(count));
      Training parts(family, kF64, {.micro_batches = count});
      ASSERT_TRUE(parts.Create(Sgd({})).ok());
      const absl::StatusOr<StepResult> result = parts.Run(0, 1);
      ASSERT_TRUE(result.ok()) << result.status();
      EXPECT_TRUE(result->updated);
      EXPECT_EQ(result->tokens, expected->tokens);
      EXPECT_NEAR(result->loss, expected->loss, 1e-12);
      EXPECT_NEAR(result->gradient_norm, expected->gradient_norm, 1e-6);  // the norm is f32
      EXPECT_LT(LargestDifference(parts.Weights(), whole.Weights()), 1e-12);
    }
  }
}

// Several steps with AdamW, clipping and averages; the second step begins where the first ended.
TEST(TrainingStepTest, TheNumberOfThreadsDoesNotChangeABit) {
  for (const int64_t count : {1, 2, 3, 4, 8}) {
    std::vector<std::vector<double>> weights;
    for (const int64_t threads : {1, 2, 4}) {
      Training training(kFamilies[0], kF32, {.micro_batches = count, .threads = threads, .ema = 0.9});
      ASSERT_TRUE(training.Create(AdamW({.clip = 0.1})).ok());
      for (int64_t step = 0; step < 3; ++step) ASSERT_TRUE(training.Run(step, 1e-2).ok());
      weights.push_back(training.Weights());
    }
    EXPECT_EQ(weights[0], weights[1]) << count;
    EXPECT_EQ(weights[0], weights[2]) << count;
  }
}

TEST(TrainingStepTest, ABatchOfFewRowsLeavesMicroBatchesEmpty) {
  for (const int64_t rows : {1, 2, 3}) {
    Training whole(kFamilies[0], kF64, {}, rows), parts(kFamilies[0], kF64, {.micro_batches = 8}, rows);
    ASSERT_TRUE(whole.Create(Sgd({})).ok());
    ASSERT_TRUE(parts.Create(Sgd({})).ok());
    for (int64_t step = 0; step < 2; ++step) {
      ASSERT_TRUE(whole.Run(step, 1).ok());
      const absl::StatusOr<StepResult> result = parts.Run(step, 1);
      ASSERT_TRUE(result.ok()) << result.status();
    }
    EXPECT_LT(LargestDifference(parts.Weights(), whole.Weights()), 1e-11) << rows;
  }
}

TEST(TrainingStepTest, MuonMultipliesInThePrecisionOfTheStep) {
  for (const int64_t micro_batches : {1, 2}) {
    Tape tape;
    const Var factor = tape.Input("factor", {kF32, {}}), w = tape.Parameter("w", {kF32, {4, 2}}, Gaussian(1));
    const TrainingProgram program = {.tape = &tape, .loss = Sum(Square(w)) * factor};
    const absl::StatusOr<std::unique_ptr<TrainingStep>> step =
        TrainingStep::Plan({&program, 1}, Muon({}), {.micro_batches = micro_batches, .precision = kBF16});
    ASSERT_TRUE(step.ok()) << step.status();
    size_t products = 0;
    for (const StepGraph& each : (*step)->graphs()) {
      const Program& compiled = each.graph.program();
      for (const Node& node : compiled.nodes) {
        if (node.op->name != absl::string_view("matmul")) continue;
        EXPECT_EQ(compiled.value(node.inputs[0]).type.dtype, kBF16);
        ++products;
      }
    }
    EXPECT_EQ(products, 15);
  }
}

// The loss mean(w · x) has the gradient x, so SGD with a rate of -1 adds the sum of the x to a weight of 0.
class Slopes {
 public:
  explicit Slopes(const StepOptions& options) {
    slope_ = tape_.Input("slope", {kF32, {}});
    loss_ = tape_.Parameter("w", {kF32, {}}, Constant(1)) * slope_;
    program_ = {.tape = &tape_, .loss = loss_};
    step_ = *TrainingStep::Plan({&program_, 1}, Sgd({}), options);
    EXPECT_TRUE(step_->Allocate(&parameters_).ok());
  }
  absl::StatusOr<StepResult> Run(const std::vector<float>& slopes, int64_t step = 0,
                                 double limit = std::numeric_limits<double>::infinity()) {
    const auto next = [&](MicroBatch m) -> absl::StatusOr<TrainingBatch> {
      return TrainingBatch{.feeds = {{slope_, slopes[static_cast<size_t>(m.index)]}}, .tokens = 1, .targets = 1};
    };
    return step_->Run(step, 1, next, limit);
  }
  float weight() const { return parameters_.Find("w")->as<float>()[0]; }
  Parameters& parameters() { return parameters_; }

 private:
  Tape tape_;
  Var slope_, loss_;
  TrainingProgram program_;
  Parameters parameters_;
  std::unique_ptr<TrainingStep> step_;
};

// Adds `slopes` as the header says, in f32.
float ByTree(const std::vector<float>& slopes) {
  if (slopes.size() == 1) return slopes[0];
  size_t left = 1;
  while (2 * left < slopes.size()) left *= 2;
  return ByTree({slopes.begin(), slopes.begin() + static_cast<int64_t>(left)}) +
         ByTree({slopes.begin() + static_cast<int64_t>(left), slopes.end()});
}

TEST(TrainingStepTest, GradientsAreAddedInATree) {
  EXPECT_EQ(ByTree({16777216, 1, 1, 1}), 16777218);  // one after the other, each 1 would be lost
  const RandomStream random = {.seed = 7};
  for (int64_t count = 2; count <= 17; ++count) {
    std::vector<float> slopes;
    for (int64_t i = 0; i < count; ++i) {
      slopes.push_back(std::ldexp(static_cast<float>(1 + random.Below(1000, i)), 8 * static_cast<int>(i % 4)));
    }
    Slopes model({.micro_batches = count});
    ASSERT_TRUE(model.Run(slopes).ok());
    EXPECT_EQ(model.weight(), 1 - ByTree(slopes) / static_cast<float>(count)) << count;
  }
}

TEST(TrainingStepTest, AStepThatIsNotFiniteChangesNothing) {
  for (const int64_t count : {1, 3, 4}) {
    Slopes model({.micro_batches = count, .ema = 0.5});
    std::vector<float> slopes(static_cast<size_t>(count), 2);
    slopes.back() = std::numeric_limits<float>::infinity();
    const absl::StatusOr<StepResult> bad = model.Run(slopes);
    ASSERT_TRUE(bad.ok()) << bad.status();
    EXPECT_FALSE(bad->updated);
    EXPECT_EQ(model.weight(), 1);
    slopes.back() = 2;
    const absl::StatusOr<StepResult> good = model.Run(slopes);  // nothing of the bad step is left
    ASSERT_TRUE(good.ok()) << good.status();
    EXPECT_TRUE(good->updated);
    EXPECT_EQ(model.weight(), -1);
    EXPECT_EQ(good->gradient_norm, 2);
  }
}

TEST(TrainingStepTest, ALossAboveItsLimitChangesNothing) {
  for (const int64_t count : {1, 2}) {
    Slopes model({.micro_batches = count, .skip_deviations = 1});
    const std::vector<float> slopes(static_cast<size_t>(count), 2);
    const absl::StatusOr<StepResult> high = model.Run(slopes, 0, 1.9);
    ASSERT_TRUE(high.ok()) << high.status();
    EXPECT_FALSE(high->updated);
    EXPECT_EQ(high->loss, 2);
    EXPECT_EQ(model.weight(), 1);
    EXPECT_TRUE(model.Run(slopes, 0, 2)->updated);
    EXPECT_EQ(model.weight(), -1);
  }
}

TEST(TrainingStepTest, BuffersAreOneForEachLevelAndNotSaved) {
  Training training(kFamilies[0], kF32, {.micro_batches = 8});
  ASSERT_TRUE(training.Create(Sgd({})).ok());
  const auto has = [&](int level) {
    return training.parameters().Find("gradient_sum." + std::to_string(level) + ".wte.weight").ok();
  };
  EXPECT_TRUE(has(0) && has(1) && has(2));
  EXPECT_FALSE(has(3));
  for (const std::string& name : training.parameters().Names(Parameters::kAll)) {
    EXPECT_THAT(name, Not(HasSubstr("gradient_sum")));
  }
}

// Dropout depends on the step of the parameters, which each micro-batch advances.
TEST(TrainingStepTest, MicroBatchesCountAsStepsOfTheParameters) {
  Slopes model({.micro_batches = 4});
  ASSERT_TRUE(model.Run({1, 1, 1, 1}, 3).ok());
  EXPECT_EQ(model.parameters().step(), 16);
}

TEST(TaskTest, RowsAreDividedEvenly) {
  const auto sizes = [](int64_t rows, int64_t count) {
    std::vector<int64_t> all;
    int64_t end = 0;
    for (int64_t i = 0; i < count; ++i) {
      const IndexRange range = RowsOf({i, count}, rows);
      EXPECT_EQ(range.begin, end);
      end = range.end;
      all.push_back(range.size());
      if (rows >= count) {
        EXPECT_EQ(MicroBatchSizes(rows, count)[SizeIndex({i, count}, rows)], range.size());
      }
    }
    EXPECT_EQ(end, rows);
    return all;
  };
  EXPECT_THAT(sizes(12, 1), ElementsAre(12));
  EXPECT_THAT(sizes(12, 5), ElementsAre(3, 3, 2, 2, 2));
  EXPECT_THAT(sizes(12, 4), ElementsAre(3, 3, 3, 3));
  EXPECT_THAT(sizes(2, 3), ElementsAre(1, 1, 0));
  EXPECT_TRUE(CheckMicroBatches(3, 3).ok());
  EXPECT_THAT(CheckMicroBatches(3, 4).message(), HasSubstr("4 can't share a batch of 3; wanted 1 to 3"));
  EXPECT_FALSE(CheckMicroBatches(3, 0).ok());
}

std::vector<double> Statistic(const Training& training, const char* name) {
  const absl::StatusOr<Tensor> found = training.parameters().Find(name);
  EXPECT_TRUE(found.ok()) << found.status();
  const absl::Span<double> values = found->span<double>();
  return {values.begin(), values.end()};
}

TEST(TrainingStepTest, AStepMovesTheStatisticsOfBatchNormUnlessItIsSkipped) {
  constexpr char kMean[] = "h.0.ln_1.running_mean", kVariance[] = "h.0.ln_1.running_var";
  Training training(kBatchNormFamily, kF64, {.skip_deviations = 1});
  ASSERT_TRUE(training.Create(Sgd({})).ok());
  EXPECT_EQ(Statistic(training, kMean), std::vector<double>(8, 0));
  EXPECT_EQ(Statistic(training, kVariance), std::vector<double>(8, 1));
  const std::vector<double> before = training.Weights();
  const absl::StatusOr<StepResult> skipped = training.Run(0, 0.1, /*limit=*/0);
  ASSERT_TRUE(skipped.ok()) << skipped.status();
  EXPECT_FALSE(skipped->updated);
  EXPECT_EQ(training.Weights(), before);
  ASSERT_TRUE(training.Run(0, 0.1).ok());
  const std::vector<double> mean = Statistic(training, kMean), variance = Statistic(training, kVariance);
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_NE(mean[i], 0) << i;
    EXPECT_GT(variance[i], 0.9) << i;  // the embeddings have a variance of about 0.001, of which a step takes a tenth
    EXPECT_LT(variance[i], 0.91) << i;
  }
}

TEST(TrainingStepTest, StatisticsOfAWholeBatchNeedOneMicroBatch) {
  Training training(kBatchNormFamily, kF32, {.micro_batches = 2});
  EXPECT_EQ(training.Create(Sgd({})).message(),
            "micro_batches is 2, but 'h.0.ln_1.running_mean' is a statistic of a whole batch; wanted 1, on one rank");
}

}  // namespace
}  // namespace weft
