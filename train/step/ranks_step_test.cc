// Tests that a step has the same bits on any number of ranks, which are threads here.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/distributed/in_process.h"
#include "weft/distributed/ranks.h"
#include "weft/models/gpt.h"
#include "weft/models/transformer.h"
#include "weft/tests/ranks/small_training.h"
#include "weft/train/step/training_step.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

// A GPT whose matrices have several blocks of SquareSumBlocks, so that ranks can own pieces of them.
Var WideLoss(Var tokens, Var targets, DType dtype) {
  const GptConfig config = {
      .vocabulary = kVocabulary, .context = kLength, .layers = 1, .heads = 2, .width = 64, .dtype = dtype};
  return CrossEntropy(Gpt(config).Logits(tokens), targets);
}

constexpr Family kWide = {"wide", WideLoss};

// Models whose batches name few rows of a tied table, so that ranks send these rows apart (train/step/late_rows.cc).
// Batches have 13 different tokens, so ids repeat, and ranks have ids in common.
constexpr int64_t kLargeVocabulary = 600;

Var TiedLoss(Var tokens, Var targets, DType dtype) {
  const GptConfig config = {
      .vocabulary = kLargeVocabulary, .context = kLength, .layers = 1, .heads = 2, .width = 16, .dtype = dtype};
  return CrossEntropy(Gpt(config).Logits(tokens), targets);
}

// One table is read by two embeddings and the output layer. Such a table has no late rows.
Var SharedLoss(Var tokens, Var targets, DType dtype) {
  const TransformerConfig config = {.source_vocabulary = kLargeVocabulary,
                                    .target_vocabulary = kLargeVocabulary,
                                    .context = kLength,
                                    .encoder_layers = 1,
                                    .decoder_layers = 1,
                                    .heads = 2,
                                    .width = 16,
                                    .feed_forward = 16,
                                    .dropout = 0.1,
                                    .shared_embeddings = true,
                                    .dtype = dtype};
  const Transformer model(config);
  return model.Loss(model.Logits(tokens, tokens), targets);
}

constexpr Family kTied = {"tied", TiedLoss}, kShared = {"shared", SharedLoss};

// Returns the number of graphs of a step that send late rows apart.
int64_t GraphsWithLateRows(const TrainingStep& step) {
  return absl::c_count_if(step.graphs(), [](const StepGraph& each) {
    return absl::c_any_of(each.graph.program().nodes,
                          [](const Node& node) { return node.op->name == std::string("write_rows"); });
  });
}

struct Outcome {
  std::vector<double> weights, figures;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

// Runs three steps, the first with a batch of `rows` rows.
Outcome Train(const Family& family, const StepOptions& options, int64_t rows) {
  Outcome outcome;
  Training training(family, kF32, options, rows);
  const absl::Status created = training.Create(AdamW({.clip = 1.0}));
  EXPECT_TRUE(created.ok()) << created;
  if (!created.ok()) return outcome;
  for (int64_t step = 0; step < 3; ++step) {
    const absl::StatusOr<StepResult> result = training.Run(step, 0.01);
    EXPECT_TRUE(result.ok()) << result.status();
    if (!result.ok()) return outcome;
    EXPECT_TRUE(result->updated);
    for (const double x : {result->loss, result->gradient_norm, static_cast<double>(result->tokens)}) {
      outcome.figures.push_back(x);
    }
  }
  outcome.weights = training.Weights();
  return outcome;
}

// Expects the outcome of one rank on each of `size` ranks.
void CheckRanks(int size, const Family& family, const StepOptions& options, const Outcome& alone,
                int64_t rows = kRows) {
  RunRanks(size, [&](Transport* transport) {
    SCOPED_TRACE(std::string(family.name) + ", rank " + std::to_string(transport->rank()) + " of " +
                 std::to_string(size) + ", micro-batches: " + std::to_string(options.micro_batches) +
                 ", bucket: " + std::to_string(options.bucket_bytes) +
                 ", sharding: " + std::to_string(static_cast<int>(options.sharding)));
    StepOptions mine = options;
    mine.ranks = Ranks(transport);
    mine.threads = 1 + transport->rank() % 2;
    const Outcome outcome = Train(family, mine, rows);
    EXPECT_EQ(outcome.figures, alone.figures);
    EXPECT_TRUE(outcome.weights == alone.weights);
  });
}

TEST(RanksStepTest, AnyNumberOfRanksGivesTheBitsOfOne) {
  for (const Family& family : kFamilies) {
    for (const int64_t micro_batches : {2, 5, 8}) {
      StepOptions options = {.micro_batches = micro_batches, .threads = 2};
      const Outcome alone = Train(family, options, kRows);
      for (const int64_t bucket_bytes : {int64_t{1}, int64_t{300}, int64_t{1} << 20}) {
        options.bucket_bytes = bucket_bytes;
        for (const int size : {2, 3, 4, 5, 8}) {
          if (size <= micro_batches) CheckRanks(size, family, options, alone);
        }
      }
    }
  }
}

TEST(RanksStepTest, AnyNumberOfRanksGivesTheBitsOfOneInBf16) {
  StepOptions options = {.micro_batches = 4, .threads = 2, .precision = kBF16};
  const Outcome alone = Train(kFamilies[0], options, kRows);
  for (const int size : {2, 3, 4}) CheckRanks(size, kFamilies[0], options, alone);
}

TEST(RanksStepTest, AnyNumberOfRanksGivesTheBitsOfOneWithSumsInBf16) {
  StepOptions options = {.micro_batches = 5, .threads = 2};
  const Outcome f32 = Train(kFamilies[2], options, kRows);
  options.sums = kBF16;
  const Outcome alone = Train(kFamilies[2], options, kRows);
  EXPECT_NE(alone.weights, f32.weights);
  EXPECT_NEAR(alone.figures[6], f32.figures[6], 1e-3);  // the third loss
  for (const int64_t bucket_bytes : {int64_t{1}, int64_t{300}}) {
    options.bucket_bytes = bucket_bytes;
    for (const int size : {2, 3, 5}) CheckRanks(size, kFamilies[2], options, alone);
  }
}

TEST(RanksStepTest, ShardingChangesNoBit) {
  for (const Family& family : {kWide, kFamilies[2]}) {
    for (const int64_t micro_batches : {2, 5, 8}) {
      StepOptions options = {.micro_batches = micro_batches, .threads = 2, .bucket_bytes = 300};
      const Outcome alone = Train(family, options, kRows);
      for (const Sharding sharding : {Sharding::kOptimizer, Sharding::kGradients, Sharding::kWeights}) {
        options.sharding = sharding;
        for (const int size : {1, 2, 3, 4, 5, 8}) {
          const bool tested = sharding != Sharding::kWeights || (size != 1 && size != 4);  // to save time
          if (tested && size <= micro_batches) CheckRanks(size, family, options, alone);
        }
      }
    }
  }
}

TEST(RanksStepTest, LateRowsChangeNoBit) {
  for (const int64_t micro_batches : {2, 3, 5, 8}) {
    for (const DType sums : {kF32, kBF16}) {
      StepOptions options = {.micro_batches = micro_batches, .threads = 2, .sums = sums};
      const Outcome alone = Train(kTied, options, kRows);
      for (const Sharding sharding : {Sharding::kNone, Sharding::kOptimizer, Sharding::kGradients}) {
        options.sharding = sharding;
        for (const int64_t bucket_bytes : {300, 8000}) {
          options.bucket_bytes = bucket_bytes;
          for (const int size : {2, 3, 5, 8}) {
            if (size <= micro_batches) CheckRanks(size, kTied, options, alone);
          }
        }
      }
    }
  }
}

TEST(RanksStepTest, LateRowsChangeNoBitWithProductsInBf16) {
  StepOptions options = {.micro_batches = 5, .threads = 2, .precision = kBF16, .bucket_bytes = 300};
  const Outcome alone = Train(kTied, options, kRows);
  for (const int size : {2, 3}) CheckRanks(size, kTied, options, alone);
}

TEST(RanksStepTest, LateRowsOfEmptyMicroBatches) {
  StepOptions options = {.micro_batches = 8, .threads = 2, .bucket_bytes = 300};
  const Outcome alone = Train(kTied, options, /*rows=*/3);  // micro-batches 3 .. 7 have no rows
  for (const Sharding sharding : {Sharding::kNone, Sharding::kGradients}) {
    options.sharding = sharding;
    for (const int size : {2, 3, 8}) CheckRanks(size, kTied, options, alone, /*rows=*/3);
  }
}

TEST(RanksStepTest, LateRowsAreUsedOnlyIfTheyAreFew) {
  RunRanks(2, [](Transport* transport) {
    // Two programs, for micro-batches of one and of two rows. A third graph is for an empty last micro-batch.
    StepOptions options = {.micro_batches = 5, .ranks = Ranks(transport), .bucket_bytes = 300};
    Training tied(kTied, kF32, options);
    ASSERT_TRUE(tied.Create(AdamW({})).ok());
    EXPECT_EQ(GraphsWithLateRows(tied.step()), 3);
    for (const Family& family : {kFamilies[0], kShared}) {  // a small vocabulary; two embeddings
      Training training(family, kF32, options);
      ASSERT_TRUE(training.Create(AdamW({})).ok());
      EXPECT_EQ(GraphsWithLateRows(training.step()), 0);
    }
    for (const Sharding sharding : {Sharding::kGradients, Sharding::kWeights}) {  // they save memory
      options.sharding = sharding;
      Training divided(kTied, kF32, options);
      ASSERT_TRUE(divided.Create(AdamW({})).ok());
      EXPECT_EQ(GraphsWithLateRows(divided.step()), 0);
    }
    options.sharding = Sharding::kNone;
    options.bucket_bytes = int64_t{1} << 20;
    Training large_bucket(kTied, kF32, options);
    ASSERT_TRUE(large_bucket.Create(AdamW({})).ok());
    EXPECT_EQ(GraphsWithLateRows(large_bucket.step()), 0);
  });
}

TEST(RanksStepTest, DividedWeightsChangeNoBitInBf16) {
  StepOptions options = {.micro_batches = 4, .threads = 2, .precision = kBF16, .sums = kBF16, .bucket_bytes = 300};
  for (const Family& family : {kWide, kTied}) {
    options.sharding = Sharding::kNone;
    const Outcome alone = Train(family, options, kRows);
    options.sharding = Sharding::kWeights;
    for (const int size : {2, 3, 4}) CheckRanks(size, family, options, alone);
  }
}

TEST(RanksStepTest, RanksHaveTheirPiecesOfTheStatesOnly) {
  for (const Sharding sharding : {Sharding::kNone, Sharding::kOptimizer}) {
    RunRanks(4, [&](Transport* transport) {
      const StepOptions options = {
          .micro_batches = 4, .threads = 1, .ranks = Ranks(transport), .sharding = sharding, .bucket_bytes = 300};
      Training training(kWide, kF32, options);
      ASSERT_TRUE(training.Create(AdamW({})).ok());
      const std::string weight = "h.0.mlp.c_fc.weight";
      int64_t elements = 0;
      for (const std::string& name : training.parameters().Names()) {
        if (!absl::StrContains(name, absl::StrCat("adamw.m.", weight))) continue;
        elements += training.parameters().Find(name)->type.shape.elements();
      }
      EXPECT_EQ(elements, sharding == Sharding::kNone ? 64 * 256 : 64 * 64);
    });
  }
}

TEST(RanksStepTest, RanksHaveTheirPiecesOfTheWeightsOnly) {
  std::map<Sharding, uint64_t> allocated;
  for (const auto& [name, sharding] : kShardingNames) {
    RunRanks(4, [&, sharding = sharding](Transport* transport) {
      const StepOptions options = {
          .micro_batches = 4, .threads = 1, .ranks = Ranks(transport), .sharding = sharding, .bucket_bytes = 300};
      Training training(kWide, kF32, options);
      ASSERT_TRUE(training.Create(AdamW({})).ok());
      ASSERT_TRUE(training.Run(/*step=*/0, /*rate=*/0.01).ok());
      int64_t elements = 0;
      for (const std::string& each : training.parameters().Names(Parameters::kWeights)) {
        if (!absl::StartsWith(each, "h.0.mlp.c_fc.weight")) continue;
        elements += training.parameters().Find(each)->type.shape.elements();
      }
      EXPECT_EQ(elements, sharding == Sharding::kWeights ? 64 * 64 : 64 * 256);
      if (transport->rank() == 0) allocated[sharding] = training.step().allocated_bytes();
    });
  }
  EXPECT_LT(allocated[Sharding::kWeights] + 3 * 3 * 64 * 256, allocated[Sharding::kOptimizer]);
}

// With one micro-batch each, gradients leave during the backward pass, so they are not all alive at its end.
TEST(RanksStepTest, DividedGradientsAreFreedDuringTheBackwardPass) {
  std::map<Sharding, uint64_t> planned;
  for (const Sharding sharding : {Sharding::kOptimizer, Sharding::kGradients, Sharding::kWeights}) {
    RunRanks(4, [&](Transport* transport) {
      const StepOptions options = {
          .micro_batches = 4, .threads = 1, .ranks = Ranks(transport), .sharding = sharding, .bucket_bytes = 300};
      Training training(kWide, kF32, options);
      ASSERT_TRUE(training.Create(AdamW({})).ok());
      if (transport->rank() > 0) return;
      planned[sharding] = training.step().graphs()[0].graph.compiled().memory.planned;
      for (const ParameterSpec& buffer : training.step().buffers()) planned[sharding] += buffer.type.bytes();
    });
  }
  constexpr uint64_t kMatrices = 64 * (192 + 64 + 256 + 256) * sizeof(float);
  EXPECT_LT(planned[Sharding::kGradients], kMatrices);
  EXPECT_GT(planned[Sharding::kOptimizer], 2 * kMatrices);
  EXPECT_LT(planned[Sharding::kWeights], 2 * kMatrices);  // this graph also has gathered weights
}

TEST(RanksStepTest, OptimizersOfWholeMatricesCannotShard) {
  RunRanks(2, [](Transport* transport) {
    Training training(
        kWide, kF32,
        {.micro_batches = 2, .ranks = Ranks(transport), .sharding = Sharding::kOptimizer, .bucket_bytes = 1});
    EXPECT_THAT(std::string(training.Create(Muon({})).message()), HasSubstr("muon: it updates whole matrices"));
    Training clipped(
        kWide, kF32,
        {.micro_batches = 2, .ranks = Ranks(transport), .sharding = Sharding::kOptimizer, .bucket_bytes = 1});
    EXPECT_THAT(std::string(clipped.Create(AdamW({.clip_value = 1})).message()),
                HasSubstr("clip_value does not work if weights are updated in pieces"));
  });
}

TEST(RanksStepTest, EmptyMicroBatchesTakePart) {
  StepOptions options = {.micro_batches = 8, .threads = 2, .bucket_bytes = 300};
  const Outcome alone = Train(kFamilies[0], options, /*rows=*/3);  // micro-batches 3 .. 7 have no rows
  for (const int size : {2, 3, 8}) {
    for (const Sharding sharding : {Sharding::kNone, Sharding::kGradients, Sharding::kWeights}) {
      options.sharding = sharding;
      CheckRanks(size, kFamilies[0], options, alone, /*rows=*/3);
    }
  }
}

// Micro-batch i has row i. On three ranks, rank 1 has the micro-batches 3, 4 and 5 of 8.
TEST(RanksStepTest, ABadBatchOfOneRankIsItsErrorAndLetsTheOthersGoOn) {
  for (const Sharding sharding : {Sharding::kNone, Sharding::kGradients, Sharding::kWeights}) {
    RunRanks(3, [&](Transport* transport) {
      const Ranks ranks(transport);
      Training training(kWide, kF32,
                        {.micro_batches = 8, .threads = 1, .ranks = ranks, .sharding = sharding, .bucket_bytes = 300});
      ASSERT_TRUE(training.Create(AdamW({.clip = 1.0})).ok());
      for (const std::vector<int64_t>& rows : std::vector<std::vector<int64_t>>{{}, {3}, {5}, {3, 4, 5}, {}}) {
        if (ranks.rank() == 1) {
          for (const int64_t row : rows) training.set_unknown_token(row, true);
        }
        const absl::StatusOr<StepResult> result = training.Run(/*step=*/0, /*rate=*/0.01);
        if (ranks.rank() == 1 && !rows.empty()) {
          EXPECT_THAT(std::string(result.status().message()), HasSubstr("13 at [0,0] is not below 13"));
        } else {
          EXPECT_TRUE(result.ok()) << result.status();
        }
        for (const int64_t row : rows) training.set_unknown_token(row, false);
        const std::vector<double> weights = training.Weights();
        const std::string bytes(reinterpret_cast<const char*>(weights.data()), weights.size() * sizeof weights[0]);
        EXPECT_TRUE(ranks.CheckEqual("weights", bytes).ok());
      }
    });
  }
}

TEST(RanksStepTest, ATimedStepHasTheTimesOfItsMessages) {
  for (const bool timed : {false, true}) {
    RunRanks(2, [&](Transport* transport) {
      Training training(kFamilies[0], kF32, {.micro_batches = 4, .timed = timed, .ranks = Ranks(transport)});
      ASSERT_TRUE(training.Create(AdamW({})).ok());
      const TrainingStep& step = training.step();
      for (size_t i = 0; i < step.graphs().size(); ++i) EXPECT_TRUE(step.tile_times(i).empty());
      ASSERT_TRUE(training.Run(/*step=*/0, /*rate=*/0.01).ok());
      int messages = 0, updates = 0;
      for (size_t i = 0; i < step.graphs().size(); ++i) {
        for (const TileTime& time : step.tile_times(i)) {
          EXPECT_GT(time.end, time.begin);
          messages += time.worker < 0;
          updates += i + 1 == step.graphs().size();
        }
      }
      EXPECT_EQ(messages > 0, timed);
      EXPECT_EQ(updates > 0, timed);
    });
  }
}

TEST(RanksStepTest, EachRankNeedsAMicroBatch) {
  RunRanks(3, [](Transport* transport) {
    Training training(kFamilies[0], kF32, {.micro_batches = 2, .ranks = Ranks(transport)});
    const absl::Status created = training.Create(AdamW({}));
    EXPECT_THAT(std::string(created.message()), HasSubstr("micro_batches is 2, but 3 ranks need at least one each"));
  });
}

}  // namespace
}  // namespace weft
