// Checks that training within a memory budget gives the same bits as without one, on any number of threads.
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/run/runner.h"
#include "weft/models/gpt.h"
#include "weft/train/optimize/optimizer.h"

namespace weft {
namespace {

constexpr int64_t kBatch = 4, kLength = 32, kVocabulary = 65;

struct Step {
  explicit Step(double clip) {
    const Gpt gpt(
        {.vocabulary = kVocabulary, .context = kLength, .layers = 3, .heads = 2, .width = 32, .dropout = 0.1});
    loss = CrossEntropy(gpt.Logits(tokens), targets);
    minimized = AdamW({.weight_decay = 0.1, .clip = clip}).Minimize(loss, rate);
  }

  absl::StatusOr<Graph> Compiled(size_t budget) const {
    return Compile(tape, {.fetch = {loss, minimized.gradient_norm}, .update = {minimized}, .memory_budget = budget});
  }

  // Trains some steps. Returns the bytes of their losses and norms, then of the final weights and moments.
  std::string Train(const Graph& graph, int threads) const {
    Parameters parameters({.seed = 7});
    Runner runner(graph, &parameters, {.threads = threads});
    std::vector<int32_t> x(kBatch * kLength), y(x.size());
    std::string bytes;
    const auto add = [&](const Tensor& t) { bytes.append(reinterpret_cast<const char*>(t.data), t.type.bytes()); };
    for (int step = 0; step < 3; ++step) {
      for (size_t i = 0; i < x.size(); ++i) {
        x[i] = static_cast<int32_t>((i * 7 + step) % kVocabulary);
        y[i] = static_cast<int32_t>((i * 11 + step) % kVocabulary);
      }
      const absl::StatusOr<Outputs> out = runner.Run({{tokens, x}, {targets, y}, {rate, 1e-2f}});
      EXPECT_TRUE(out.ok()) << out.status();
      if (!out.ok()) return "";
      add((*out)[loss]);
      add((*out)[minimized.gradient_norm]);
    }
    for (const std::string& name : parameters.Names()) add(*parameters.Find(name));
    return bytes;
  }

  Tape tape;
  Var tokens = tape.Input("tokens", {kI32, {kBatch, kLength}}, {.below = kVocabulary});
  Var targets = tape.Input("targets", {kI32, {kBatch, kLength}}, {.below = kVocabulary});
  Var rate = tape.Input("learning_rate", {kF32, {}});
  Var loss;
  Minimized minimized;
};

TEST(MemoryBudgetTest, TrainsToTheSameBitsOnAnyNumberOfThreads) {
  for (const double clip : {0.0, 1.0}) {
    const Step step(clip);
    const absl::StatusOr<Graph> free = step.Compiled(0);
    ASSERT_TRUE(free.ok()) << free.status();
    const std::string expected = step.Train(*free, 2);
    const size_t planned = free->compiled().memory.planned;
    EXPECT_LE(static_cast<double>(planned), 1.05 * static_cast<double>(free->compiled().memory.lower_bound));
    for (const double fraction : {0.8, 0.6, 0.5}) {
      const absl::StatusOr<Graph> less = step.Compiled(static_cast<size_t>(fraction * static_cast<double>(planned)));
      ASSERT_TRUE(less.ok()) << less.status();
      EXPECT_LE(less->compiled().memory.planned, fraction * static_cast<double>(planned));
      EXPECT_GT(less->compiled().memory.recomputed, 0);
      EXPECT_LT(less->compiled().memory.recomputed, 0.35);
      for (const int threads : {1, 2, 4}) {
        EXPECT_TRUE(step.Train(*less, threads) == expected) << "clip " << clip << ", " << fraction << ", " << threads;
      }
    }
  }
}

TEST(MemoryBudgetTest, GradientsAreFreedByTheirUpdatesWhereNoNormNeedsThemAll) {
  const Step alone(0), together(1);
  const absl::StatusOr<Graph> early = alone.Compiled(0), late = together.Compiled(0);
  ASSERT_TRUE(early.ok() && late.ok()) << early.status() << late.status();
  uint32_t first_update = 0, backward_end = 0;
  const auto& nodes = early->program().nodes;
  for (uint32_t n = 0; n < nodes.size(); ++n) {
    if (std::string(nodes[n].op->name) == "adamw" && first_update == 0) first_update = n;
    if (std::string(nodes[n].op->name) == "layer_norm_gradient") backward_end = n;
  }
  EXPECT_LT(first_update, backward_end);
  EXPECT_LE(early->compiled().memory.planned, late->compiled().memory.planned);
}

}  // namespace
}  // namespace weft
