// Tests that a step of several micro-batches makes the update of the whole batch, that its sums are a fixed tree, and
// that a step whose numbers are not finite changes nothing.
#include "weft/train/training_step.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/random.h"
#include "weft/core/status.h"
#include "weft/models/bert.h"
#include "weft/models/gpt.h"
#include "weft/models/layers.h"
#include "weft/models/transformer.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kRows = 8, kLength = 6, kVocabulary = 13;

// A model with its batch: kRows rows of tokens and of targets, some of them ignored.
struct Family {
  const char* name;
  Var (*loss)(Var tokens, Var targets, DType dtype);
};

Var GptLoss(Var tokens, Var targets, DType dtype) {
  const GptConfig config = {
      .vocabulary = kVocabulary, .context = kLength, .layers = 2, .heads = 2, .width = 8, .dtype = dtype};
  return CrossEntropy(Gpt(config).Logits(tokens), targets);
}

Var BertLoss(Var tokens, Var targets, DType dtype) {
  const BertConfig config = {
      .vocabulary = kVocabulary, .context = kLength, .layers = 2, .heads = 2, .width = 8, .dropout = 0, .dtype = dtype};
  const Bert bert(config);
  return CrossEntropy(bert.MaskedTokens(bert.Encode(tokens, {})), targets);
}

Var TransformerLoss(Var tokens, Var targets, DType dtype) {
  const TransformerConfig config = {.source_vocabulary = kVocabulary,
                                    .target_vocabulary = kVocabulary,
                                    .context = kLength,
                                    .encoder_layers = 1,
                                    .decoder_layers = 1,
                                    .heads = 2,
                                    .width = 8,
                                    .feed_forward = 16,
                                    .dropout = 0,
                                    .dtype = dtype};
  const Transformer model(config);
  return model.Loss(model.Logits(tokens, tokens), targets);
}

constexpr Family kFamilies[] = {{"gpt", GptLoss}, {"bert", BertLoss}, {"transformer", TransformerLoss}};

// Trains a family of models on one batch, of whose rows the first `rows` are used.
class Training {
 public:
  Training(const Family& family, DType dtype, const StepOptions& options, int64_t rows = kRows)
      : options_(options), rows_(rows) {
    const RandomStream random = {.seed = 5};
    for (int64_t i = 0; i < kRows * kLength; ++i) {
      tokens_.push_back(static_cast<int32_t>(random.Below(kVocabulary, 2 * i)));
      const auto target = static_cast<int32_t>(random.Below(kVocabulary, 2 * i + 1));
      targets_.push_back(target % 5 == 0 ? kIgnoredTarget : target);  // so rows differ in their number of targets
    }
    for (const int64_t size : MicroBatchSizes(kRows, options.micro_batches)) {
      Recorded& recorded = recorded_.emplace_back();
      const TensorType type = {kI32, {size, kLength}};
      recorded.tokens = recorded.tape.Input("tokens", type, {.below = kVocabulary});
      recorded.targets = recorded.tape.Input("targets", type, {.below = kVocabulary, .ignored = kIgnoredTarget});
      programs_.push_back({.tape = &recorded.tape, .loss = family.loss(recorded.tokens, recorded.targets, dtype)});
    }
  }

  absl::Status Create(const Optimizer& optimizer) {
    WEFT_ASSIGN_OR_RETURN(step_, TrainingStep::Create(programs_, optimizer, options_, &parameters_));
    return absl::OkStatus();
  }
  absl::StatusOr<StepResult> Run(int64_t step, double rate, double limit = std::numeric_limits<double>::infinity()) {
    return step_->Run(
        step, rate, [this](MicroBatch m) { return Batch(m); }, limit);
  }

  // The values of all weights, in the order of their names.
  std::vector<double> Weights() const {
    std::vector<double> values;
    for (const std::string& name : parameters_.Names(Parameters::kWeights)) {
      const Tensor tensor = *parameters_.Find(name);
      for (int64_t i = 0; i < tensor.type.shape.elements(); ++i) {
        values.push_back(tensor.type.dtype == kF64 ? tensor.as<double>()[i] : tensor.as<float>()[i]);
      }
    }
    return values;
  }
  const Parameters& parameters() const { return parameters_; }

 private:
  struct Recorded {
    Tape tape;
    Var tokens, targets;
  };

  absl::StatusOr<TrainingBatch> Batch(MicroBatch m) {
    const size_t program = SizeIndex(m, kRows);
    const RowRange rows = RowsOf(m, rows_), padded = RowsOf(m, kRows);
    const auto begin = static_cast<size_t>(rows.begin * kLength), size = static_cast<size_t>(rows.size() * kLength);
    fed_tokens_.assign(static_cast<size_t>(padded.size() * kLength), 0);
    fed_targets_.assign(fed_tokens_.size(), kIgnoredTarget);
    std::copy_n(tokens_.begin() + begin, size, fed_tokens_.begin());
    std::copy_n(targets_.begin() + begin, size, fed_targets_.begin());
    const auto ignored = std::count(fed_targets_.begin(), fed_targets_.end(), kIgnoredTarget);
    return TrainingBatch{
        .program = program,
        .feeds = {{recorded_[program].tokens, fed_tokens_}, {recorded_[program].targets, fed_targets_}},
        .tokens = static_cast<int64_t>(size),
        .targets = static_cast<int64_t>(fed_targets_.size()) - ignored};
  }

  StepOptions options_;
  int64_t rows_;
  std::vector<int32_t> tokens_, targets_, fed_tokens_, fed_targets_;
  std::deque<Recorded> recorded_;
  std::vector<TrainingProgram> programs_;
  Parameters parameters_{{.seed = 3}};
  std::unique_ptr<TrainingStep> step_;
};

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
      Training training(kFamilies[0], kF32, {.micro_batches = count, .threads = threads, .average_decay = 0.9});
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

// The loss mean(w · x) has the gradient x, so SGD with a rate of -1 adds the sum of the x to a weight of 0.
class Slopes {
 public:
  explicit Slopes(const StepOptions& options) {
    slope_ = tape_.Input("slope", {kF32, {}});
    loss_ = tape_.Parameter("w", {kF32, {}}, Constant(1)) * slope_;
    program_ = {.tape = &tape_, .loss = loss_};
    step_ = *TrainingStep::Create({&program_, 1}, Sgd({}), options, &parameters_);
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
    Slopes model({.micro_batches = count, .average_decay = 0.5});
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
    Slopes model({.micro_batches = count, .limits_loss = true});
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
      const RowRange range = RowsOf({i, count}, rows);
      EXPECT_EQ(range.begin, end);
      end = range.end;
      all.push_back(range.size());
      if (rows >= count) EXPECT_EQ(MicroBatchSizes(rows, count)[SizeIndex({i, count}, rows)], range.size());
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

}  // namespace
}  // namespace weft
