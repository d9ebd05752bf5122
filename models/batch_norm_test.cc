// Compares BatchNorm with PyTorch's, and measures its effect on batches of padded sentences.
#include <cmath>
#include <cstdio>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/random.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/run/runner.h"
#include "weft/models/layers.h"

namespace weft {
namespace {

using ::testing::Pointwise;

std::vector<double> Waves(int64_t n, double shift, double scale, double offset) {
  std::vector<double> values(static_cast<size_t>(n));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = offset + scale * std::sin(0.7 * static_cast<double>(i) + shift);
  return values;
}

// The expected numbers are those of PyTorch 2.15's BatchNorm1d(3, dtype=float64) with the same gains and biases: the
// second of two training batches, the running statistics after both batches, and the first batch in evaluation.
TEST(BatchNormTest, IsPytorchs) {
  Tape tape;
  const Var x = tape.Input("x", {kF64, {4, 3}});
  VarList updates;
  const Var y = BatchNorm("norm", x, {}, &updates);
  const absl::StatusOr<Graph> train = Compile(tape, {.fetch = {y}, .update = updates}),
                              eval = Compile(tape, {.fetch = {y}, .mode = kEval});
  ASSERT_TRUE(train.ok()) << train.status();
  ASSERT_TRUE(eval.ok()) << eval.status();
  Parameters parameters({.seed = 1});
  Runner trainer(*train, &parameters), evaluator(*eval, &parameters);
  const auto set = [&](const char* name, std::vector<double> values) {
    const absl::Span<double> to = parameters.Find(name)->span<double>();
    std::copy(values.begin(), values.end(), to.begin());
  };
  set("norm.weight", {1.5, 0.5, -1});
  set("norm.bias", {0.1, -0.2, 0.3});
  const std::vector<double> first = Waves(12, 0, 1, 0), second = Waves(12, 1, 2, 0.5);
  ASSERT_TRUE(trainer.Run({{x, first}}).ok());
  const absl::StatusOr<Outputs> trained = trainer.Run({{x, second}});
  ASSERT_TRUE(trained.ok()) << trained.status();
  const auto near = [](std::vector<double> wanted) {
    return Pointwise(::testing::DoubleNear(1e-12), std::move(wanted));
  };
  EXPECT_THAT((*trained)[y].span<const double>(),
              near({1.4233881389005465, 0.2975845272701276, -0.44899371165075813, -0.25964578987798415,
                    -0.7765164921193352, 1.9912862825134394, -2.2059949107785575, -0.6171075374842895,
                    0.08825657878628256, 1.4422525617559954, 0.29603950233349696, -0.4305491496489638}));
  EXPECT_THAT(parameters.Find("norm.running_mean")->span<const double>(),
              near({0.09269174923867171, 0.11447357109362592, 0.10593246503590995}));
  EXPECT_THAT(parameters.Find("norm.running_var")->span<const double>(),
              near({1.1262042093128513, 1.1616814057056482, 1.1214141997427822}));
  const absl::StatusOr<Outputs> evaluated = evaluator.Run({{x, first}});
  ASSERT_TRUE(evaluated.ok()) << evaluated.status();
  EXPECT_THAT((*evaluated)[y].span<const double>(),
              near({-0.031015245768501832, 0.04574843332582453, -0.5305378078308735, 1.1890888978049536,
                    -0.09770322939212904, 0.7312816420479075, -1.2629448939469095, -0.7088643420618084,
                    0.9961452051737962, -0.007249621294072858, 0.0516719346845496, -0.5331049208940714}));
}

// Seven sentences of 4 to 28 tokens and a longest one are padded with zeros. If the longest sentence gets longer, the
// others get more padding, though their own tokens stay the same. Features are Gaussian with mean and deviation 1.
TEST(BatchNormTest, PaddingOfOtherSentencesChangesASentenceUnlessItIsLayerNorm) {
  constexpr int64_t kSentences = 8, kWidth = 16;
  const auto normalized = [&](bool batch_norm, int64_t longest) {
    Tape tape;
    const Var x = tape.Input("x", {kF32, {kSentences, longest, kWidth}});
    VarList updates;
    const Var y = batch_norm ? BatchNorm("norm", x, {}, &updates) : LayerNorm("norm", x);
    const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {y}});
    EXPECT_TRUE(graph.ok()) << graph.status();
    Parameters parameters({.seed = 1});
    Runner runner(*graph, &parameters);
    std::vector<float> data(static_cast<size_t>(kSentences * longest * kWidth), 0.0f);
    const RandomStream random = {.seed = 1};
    const auto gaussian = [&](uint64_t i) {
      const double u = 1 - static_cast<double>(random.Uniform(2 * i)), v = random.Uniform(2 * i + 1);
      return static_cast<float>(1 + std::sqrt(-2 * std::log(u)) * std::cos(6.283185307179586 * v));
    };
    for (int64_t s = 0; s < kSentences; ++s) {
      const int64_t length = s + 1 < kSentences ? 4 * (s + 1) : longest;
      for (int64_t t = 0; t < length; ++t) {
        for (int64_t c = 0; c < kWidth; ++c) {
          data[(s * longest + t) * kWidth + c] = gaussian(static_cast<uint64_t>((s * 1000 + t) * kWidth + c));
        }
      }
    }
    const absl::StatusOr<Outputs> out = runner.Run({{x, data}});
    EXPECT_TRUE(out.ok()) << out.status();
    const absl::Span<const float> values = (*out)[y].span<const float>();
    return std::vector<float>(values.begin(), values.begin() + 4 * kWidth);  // the first sentence
  };
  // The change of the first sentence's features, of their size.
  const auto change = [&](bool batch_norm) {
    const std::vector<float> before = normalized(batch_norm, 32), after = normalized(batch_norm, 256);
    double difference = 0, size = 0;
    for (size_t i = 0; i < before.size(); ++i) {
      difference += (after[i] - before[i]) * (after[i] - before[i]);
      size += before[i] * before[i];
    }
    return std::sqrt(difference / size);
  };
  EXPECT_EQ(change(/*batch_norm=*/false), 0);
  const double of_batch_norm = change(/*batch_norm=*/true);
  std::printf("batch norm: the first sentence changes by %.0f%%\n", 100 * of_batch_norm);
  EXPECT_GT(of_batch_norm, 0.2);
}

}  // namespace
}  // namespace weft
