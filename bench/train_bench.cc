// One training step of a character GPT as `weft train gpt` trains it (0.8M parameters, 65 characters, batch 12, context
// 64): forward, backward, clip and AdamW, on 1 and 2 threads, alternating.
//
//   bazel run -c opt //bench:train_bench -- --benchmark_repetitions=10 --benchmark_enable_random_interleaving=true
#include <memory>
#include <string>
#include <vector>

#include "benchmark/benchmark.h"
#include "weft/core/random.h"
#include "weft/graph/compile.h"
#include "weft/graph/runner.h"
#include "weft/models/gpt.h"
#include "weft/train/optimizer.h"

namespace weft {
namespace {

constexpr int64_t kBatch = 12, kLength = 64, kVocabulary = 65;

std::vector<int32_t> RandomTokens(uint32_t stream) {
  const RandomStream random = {.seed = 1, .stream = stream};
  std::vector<int32_t> tokens(kBatch * kLength);
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>(random.Below(kVocabulary, i));
  return tokens;
}

void TrainStep(benchmark::State& state) {
  Tape tape;
  const Var tokens = tape.Input("tokens", {kI32, {kBatch, kLength}}, {.below = kVocabulary});
  const Var targets = tape.Input("targets", {kI32, {kBatch, kLength}}, {.below = kVocabulary});
  const Var rate = tape.Input("learning_rate", {kF32, {}});
  const Gpt gpt({.vocabulary = kVocabulary, .context = kLength, .layers = 4, .heads = 4, .width = 128});
  const Var loss = CrossEntropy(gpt.Logits(tokens), targets);
  const Minimized step = AdamW({.beta2 = 0.99, .weight_decay = 0.1, .clip = 1}).Minimize(loss, rate);
  const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {loss, step.gradient_norm}, .update = {step}});
  if (!graph.ok()) return state.SkipWithError(std::string(graph.status().message()).c_str());

  Parameters parameters({.seed = 1});
  Runner runner(*graph, &parameters, {.threads = static_cast<int>(state.range(0))});
  const std::vector<int32_t> x = RandomTokens(0), y = RandomTokens(1);
  for (auto _ : state) {
    const absl::StatusOr<Outputs> out = runner.Run({{tokens, x}, {targets, y}, {rate, 1e-3f}});
    if (!out.ok()) return state.SkipWithError(std::string(out.status().message()).c_str());
  }
  state.SetItemsProcessed(state.iterations() * kBatch * kLength);
  state.counters["parameters"] = static_cast<double>(parameters.ElementCount());
  state.counters["steps"] = static_cast<double>(graph->compiled().steps.size());
  state.counters["planned_mb"] = static_cast<double>(graph->compiled().memory.planned) / 1e6;
  state.counters["naive_mb"] = static_cast<double>(graph->compiled().memory.naive) / 1e6;
  state.counters["lower_bound_mb"] = static_cast<double>(graph->compiled().memory.lower_bound) / 1e6;
}
BENCHMARK(TrainStep)->ArgName("threads")->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace weft

BENCHMARK_MAIN();
