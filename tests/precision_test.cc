// Checks that training in bf16 reaches the loss of f32 within 1%, with the same bits on any number of threads.
#include <algorithm>
#include <iterator>
#include <vector>

#include "gtest/gtest.h"
#include "weft/core/random.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/run/runner.h"
#include "weft/models/gpt.h"
#include "weft/train/optimize/optimizer.h"

namespace weft {
namespace {

constexpr int64_t kBatch = 16, kLength = 32, kVocabulary = 27;

// Returns a text of random words as characters: 0 to 25 are letters, 26 separates words. Earlier words of the list are
// more frequent.
std::vector<int32_t> StandInText(int64_t length) {
  constexpr const char* kWords[] = {"the", "and",  "of",   "that", "in",   "he",    "shall", "unto",
                                    "for", "his",  "lord", "they", "be",   "is",    "him",   "them",
                                    "not", "with", "all",  "was",  "thou", "which", "my",    "me"};
  constexpr int64_t kCount = std::size(kWords);
  const RandomStream random = {.seed = 5};
  std::vector<int32_t> text;
  for (uint64_t i = 0; text.size() < static_cast<size_t>(length); ++i) {
    const auto word = std::min(random.Below(kCount, 2 * i), random.Below(kCount, 2 * i + 1));
    for (const char* letter = kWords[word]; *letter != 0; ++letter) text.push_back(*letter - 'a');
    text.push_back(26);
  }
  return text;
}

// Returns the losses of `steps` steps of AdamW.
std::vector<double> Losses(const GptConfig& config, DType precision, int threads, int steps) {
  Tape tape;
  const Var tokens = tape.Input("tokens", {kI32, {kBatch, kLength}}, {.below = kVocabulary});
  const Var targets = tape.Input("targets", {kI32, {kBatch, kLength}}, {.below = kVocabulary});
  const Var rate = tape.Input("learning_rate", {kF32, {}});
  const Var loss = CrossEntropy(Gpt(config).Logits(tokens), targets);
  const Minimized step = AdamW({.weight_decay = 0.1, .clip = 1}).Minimize(loss, rate);
  const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {loss}, .update = {step}, .precision = precision});
  EXPECT_TRUE(graph.ok()) << graph.status();
  if (!graph.ok()) return {};
  Parameters parameters({.seed = 1});
  Runner runner(*graph, &parameters, {.threads = threads});
  const std::vector<int32_t> text = StandInText(20000);
  std::vector<double> losses;
  for (int s = 0; s < steps; ++s) {
    std::vector<int32_t> x, y;
    const RandomStream random = {.seed = 9, .step = static_cast<uint32_t>(s)};
    for (uint64_t b = 0; b < kBatch; ++b) {
      const size_t begin = random.Below(static_cast<int64_t>(text.size()) - kLength - 1, b);
      x.insert(x.end(), &text[begin], &text[begin] + kLength);
      y.insert(y.end(), &text[begin + 1], &text[begin + 1] + kLength);
    }
    const float warm_up =
        std::min(1.0f, static_cast<float>(s + 1) / 20);  // without it, rounding errors grow unrealistically
    const absl::StatusOr<Outputs> out = runner.Run({{tokens, x}, {targets, y}, {rate, 1e-3f * warm_up}});
    EXPECT_TRUE(out.ok()) << out.status();
    losses.push_back(out->Scalar(loss));
  }
  return losses;
}

constexpr GptConfig kGpt2 = {.vocabulary = kVocabulary, .context = kLength, .layers = 4, .heads = 4, .width = 48};
const GptConfig kLlama = {.vocabulary = kVocabulary,
                          .context = kLength,
                          .layers = 2,
                          .heads = 4,
                          .width = 48,
                          .dropout = 0.1,
                          .norm = {.kind = NormKind::kRmsNorm},
                          .gated = true,
                          .attention = {.key_value_heads = 2, .rotary = RotaryLayout::kHalves}};

TEST(PrecisionTest, TheLossIsThatOfF32WithinOnePercent) {
  constexpr int kSteps = 200, kWindow = 50;
  for (const GptConfig& config : {kGpt2, kLlama}) {
    const std::vector<double> f32 = Losses(config, kF32, 2, kSteps), bf16 = Losses(config, kBF16, 2, kSteps);
    ASSERT_EQ(f32.size(), bf16.size());
    EXPECT_LT(f32.back(), 0.7 * f32.front()) << "it learns";
    for (int begin = 0; begin < kSteps; begin += kWindow) {
      double mean = 0, other = 0;
      for (int s = begin; s < begin + kWindow; ++s) {
        mean += f32[s] / kWindow;
        other += bf16[s] / kWindow;
      }
      EXPECT_NEAR(other, mean, 0.01 * mean) << "steps " << begin << " to " << begin + kWindow;
    }
  }
}

TEST(PrecisionTest, TheNumberOfThreadsDoesNotChangeABit) {
  for (const GptConfig& config : {kGpt2, kLlama}) {
    const std::vector<double> one = Losses(config, kBF16, 1, 20);
    EXPECT_EQ(one, Losses(config, kBF16, 2, 20));
    EXPECT_EQ(one, Losses(config, kBF16, 4, 20));
  }
}

}  // namespace
}  // namespace weft
