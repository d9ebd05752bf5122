#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/parameters.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/run/runner.h"
#include "weft/models/recurrent.h"

namespace weft {
namespace {

using ::testing::HasSubstr;
using Tokens = std::vector<int32_t>;

constexpr int64_t kBatch = 3, kSource = 4, kTarget = 5, kVocabulary = 9;
constexpr int32_t kBegin = 1, kEnd = 2;
constexpr LstmTranslatorConfig kSmall = {.source_vocabulary = kVocabulary,
                                         .target_vocabulary = kVocabulary,
                                         .context = 8,
                                         .width = 16,
                                         .dropout = 0,
                                         .label_smoothing = 0};

// Three sentences of 4, 2 and 3 words, and the same words backwards.
const Tokens kSources = {3, 4, 5, 6, 7, 8, 0, 0, 5, 3, 8, 0}, kLengths = {4, 2, 3};
const Tokens kSeen = {kBegin, 6, 5, 4, 3, kBegin, 8, 7, 0, 0, kBegin, 8, 3, 5, 0};
const Tokens kNext = {6, 5, 4, 3, kEnd, 8, 7, kEnd, -100, -100, 8, 3, 5, kEnd, -100};

// Trains `steps` steps on the three sentences. Returns the losses.
std::vector<double> Train(const LstmTranslatorConfig& config, int steps, Parameters* parameters) {
  Tape tape;
  const Var source = tape.Input("source", {kI32, {kBatch, kSource}}, {.below = kVocabulary});
  const Var lengths = tape.Input("lengths", {kI32, {kBatch}}, {.below = kSource + 1});
  const Var target = tape.Input("target", {kI32, {kBatch, kTarget}}, {.below = kVocabulary});
  const Var next = tape.Input("next", {kI32, {kBatch, kTarget}}, {.below = kVocabulary, .ignored = -100});
  const LstmTranslator model(config);
  const Var loss = model.Loss(model.Logits(source, target, lengths), next);
  const VarList weights = tape.Weights(), gradients = Gradient(loss, weights);
  VarList updates;
  for (size_t i = 0; i < weights.size(); ++i)
    updates.push_back(Assign(weights[i], weights[i] - Scale(gradients[i], 1)));
  const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {loss}, .update = updates});
  EXPECT_TRUE(graph.ok()) << graph.status();
  if (!graph.ok()) return {};
  Runner runner(*graph, parameters);
  std::vector<double> losses;
  for (int i = 0; i < steps; ++i) {
    const absl::StatusOr<Outputs> out =
        runner.Run({{source, kSources}, {lengths, kLengths}, {target, kSeen}, {next, kNext}});
    EXPECT_TRUE(out.ok()) << out.status();
    losses.push_back(out->Scalar(loss));
  }
  return losses;
}

// Returns the first tokens of the greedy translations of the three sentences, [kBatch, kTarget]. Each run adds a token
// to all of them. The tokens behind it do not count yet, because logits depend on earlier tokens only.
Tokens Greedy(const LstmTranslatorConfig& config, Parameters* parameters) {
  Tape tape;
  const Var source = tape.Input("source", {kI32, {kBatch, kSource}}, {.below = kVocabulary});
  const Var lengths = tape.Input("lengths", {kI32, {kBatch}}, {.below = kSource + 1});
  const Var target = tape.Input("target", {kI32, {kBatch, kTarget}}, {.below = kVocabulary});
  const Var likeliest = ArgMax(LstmTranslator(config).Logits(source, target, lengths));  // [kBatch, kTarget]
  const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {likeliest}, .mode = kEval});
  EXPECT_TRUE(graph.ok()) << graph.status();
  if (!graph.ok()) return {};
  Runner runner(*graph, parameters);
  Tokens seen(kBatch * kTarget, kBegin), next;
  for (int64_t t = 0; t < kTarget; ++t) {
    const absl::StatusOr<Outputs> out = runner.Run({{source, kSources}, {lengths, kLengths}, {target, seen}});
    EXPECT_TRUE(out.ok()) << out.status();
    const absl::Span<const int32_t> values = (*out)[likeliest].span<const int32_t>();
    next.assign(values.begin(), values.end());
    for (int64_t row = 0; row < kBatch && t + 1 < kTarget; ++row) {
      seen[row * kTarget + t + 1] = next[row * kTarget + t];
    }
  }
  return next;
}

TEST(LstmTranslatorTest, LearnsToTranslate) {
  for (const bool shared : {false, true}) {
    LstmTranslatorConfig config = kSmall;
    config.shared_embeddings = shared;
    Parameters parameters({.seed = 2});
    const std::vector<double> losses = Train(config, 150, &parameters);
    ASSERT_EQ(losses.size(), 150);
    EXPECT_NEAR(losses.front(), 2.2, 0.5);
    EXPECT_LT(losses.back(), 0.05);
    const Tokens got = Greedy(config, &parameters);
    ASSERT_EQ(got.size(), kNext.size());
    for (size_t i = 0; i < kNext.size(); ++i) {
      EXPECT_TRUE(kNext[i] < 0 || got[i] == kNext[i]) << i;
    }
  }
}

// Returns the logits [5, V] of a target after one source, whose first `length` tokens count.
std::vector<double> LogitsOf(const Tokens& words, int32_t length) {
  LstmTranslatorConfig config = kSmall;
  config.dtype = kF64;
  Tape tape;
  const Var source = tape.Input("source", {kI32, {1, static_cast<int64_t>(words.size())}}, {.below = kVocabulary});
  const Var lengths = tape.Input("lengths", {kI32, {1}}, {.below = 9});
  const Var target = tape.Input("target", {kI32, {1, kTarget}}, {.below = kVocabulary});
  const Var logits = LstmTranslator(config).Logits(source, target, lengths);
  const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {logits}});
  EXPECT_TRUE(graph.ok()) << graph.status();
  if (!graph.ok()) return {};
  Parameters parameters({.seed = 3});
  Runner runner(*graph, &parameters);
  const Tokens count = {length}, seen = {kBegin, 3, 4, 5, 6};
  const absl::StatusOr<Outputs> out = runner.Run({{source, words}, {lengths, count}, {target, seen}});
  EXPECT_TRUE(out.ok()) << out.status();
  const absl::Span<const double> values = (*out)[logits].span<const double>();
  return {values.begin(), values.end()};
}

TEST(LstmTranslatorTest, PaddingChangesNothing) {
  const std::vector<double> alone = LogitsOf({7, 8}, 2), padded = LogitsOf({7, 8, 5, 5, 6, 3, 4}, 2);
  ASSERT_EQ(alone.size(), kTarget * kVocabulary);
  for (size_t i = 0; i < alone.size(); ++i) EXPECT_NEAR(padded[i], alone[i], 1e-12) << i;
}

TEST(LstmTranslatorTest, SaysWhatDoesNotFit) {
  const auto error = [](const LstmTranslatorConfig& config, int64_t sources, int64_t targets) {
    Tape tape;
    const Var source = tape.Input("source", {kI32, {1, sources}}, {.below = kVocabulary});
    LstmTranslator(config).Logits(source, tape.Input("target", {kI32, {1, targets}}, {.below = kVocabulary}));
    return std::string(tape.status().message());
  };
  EXPECT_EQ(error(kSmall, 8, 8), "");
  EXPECT_THAT(error(kSmall, 9, 8), HasSubstr("source's tokens must be i32[B,T] with T at most the context 8"));
  EXPECT_THAT(error(kSmall, 8, 9), HasSubstr("target's tokens must be i32[B,T] with T at most the context 8"));
  LstmTranslatorConfig config = kSmall;
  config.width = 15;
  EXPECT_THAT(error(config, 8, 8), HasSubstr("width 15 is odd, but each direction of the encoder has half of it"));
  config = kSmall;
  config.shared_embeddings = true;
  config.target_vocabulary = 7;
  EXPECT_THAT(error(config, 8, 8), HasSubstr("source_vocabulary 9 and target_vocabulary 7 differ, but share"));
}

}  // namespace
}  // namespace weft
