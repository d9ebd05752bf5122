// Measures Compile's time and memory per node, for artificial graphs of up to a million nodes, and for the models of
// train_bench. For the artificial graphs, neither should depend on the number of nodes.
//
//   bazel run -c opt //bench:compile_bench
//   bazel run -c opt //bench:compile_bench -- --benchmark_filter=Step/gpt2
#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>

#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "weft/bench/step/bench_step.h"
#include "weft/graph/compile/compile.h"
#include "weft/lab/real_graphs.h"
#include "weft/ops/ops.h"

namespace {

size_t heap_bytes = 0, peak_bytes = 0;  // not atomic, because Compile runs on one thread

}  // namespace

void* operator new(size_t size) {
  void* p = std::malloc(std::max<size_t>(size, 1));
  if (p == nullptr) throw std::bad_alloc();
  heap_bytes += malloc_usable_size(p);
  peak_bytes = std::max(peak_bytes, heap_bytes);
  return p;
}
void operator delete(void* p) noexcept {
  heap_bytes -= malloc_usable_size(p);
  std::free(p);
}
void operator delete(void* p, size_t) noexcept { operator delete(p); }

namespace weft {
namespace {

Var Chain(Tape* tape, int64_t nodes) {
  Var x = tape->Input("x", {kF32, {4}});
  for (int64_t i = 0; i < nodes; ++i) x = Tanh(x);
  return x;
}

// Records a binary tree of sums: half of its nodes are leaves, which form a chain and are added pairwise.
Var Tree(Tape* tape, int64_t nodes) {
  const Var x = tape->Input("x", {kF32, {4}});
  std::vector<Var> level;
  Var leaf = x;
  for (int64_t i = 0; i < nodes / 2; ++i) level.push_back(leaf = Tanh(leaf));
  while (level.size() > 1) {
    std::vector<Var> next;
    for (size_t i = 0; i + 1 < level.size(); i += 2) next.push_back(level[i] + level[i + 1]);
    if (level.size() % 2 == 1) next.push_back(level.back());
    level = std::move(next);
  }
  return level[0];
}

// Records a square grid of additions. Each node adds its neighbour above and its neighbour on the left.
Var Wavefront(Tape* tape, int64_t nodes) {
  const Var x = tape->Input("x", {kF32, {4}});
  int64_t side = 1;
  while ((side + 1) * (side + 1) <= nodes) ++side;
  std::vector<Var> row(static_cast<size_t>(side), x);
  for (int64_t i = 0; i < side; ++i) {
    Var left = x;
    for (Var& above : row) left = above = above + left;
  }
  return row.back();
}

void MeasureCompile(benchmark::State& state, const Tape& tape, const CompileOptions& options) {
  double calls = 0, peak = 0, kept = 0;
  for (auto _ : state) {
    const size_t before = peak_bytes = heap_bytes;
    const absl::StatusOr<Graph> graph = Compile(tape, options);
    if (!graph.ok()) return state.SkipWithError(std::string(graph.status().message()).c_str());
    calls = static_cast<double>(graph->compiled().calls.size());
    peak = static_cast<double>(peak_bytes - before);
    kept = static_cast<double>(heap_bytes - before);
  }
  state.counters["per_node"] =
      benchmark::Counter(calls, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
  state.counters["peak_bytes_per_node"] = peak / calls;
  state.counters["kept_bytes_per_node"] = kept / calls;
  state.counters["calls"] = calls;
}

template <Var (*record)(Tape*, int64_t)>
void CompileGraph(benchmark::State& state) {
  Tape tape;
  const Var root = record(&tape, state.range(0));
  MeasureCompile(state, tape, {.fetch = {root}});
}
BENCHMARK(CompileGraph<Chain>)->Arg(10'000)->Arg(100'000)->Arg(1'000'000)->Unit(benchmark::kMillisecond);
BENCHMARK(CompileGraph<Tree>)->Arg(10'000)->Arg(100'000)->Arg(1'000'000)->Unit(benchmark::kMillisecond);
BENCHMARK(CompileGraph<Wavefront>)->Arg(10'000)->Arg(100'000)->Arg(1'000'000)->Unit(benchmark::kMillisecond);

// Registers the compilation of each model's step, at the batch and length of docs/performance.md.
void RegisterSteps() {
  for (const BenchModel& model : BenchModels()) {
    const auto compile = [&model](benchmark::State& state) {
      Tape tape;
      const BenchStep step = RecordStep(&tape, model, model.batch, model.length);
      MeasureCompile(state, tape, step.options);
    };
    benchmark::RegisterBenchmark(absl::StrCat("CompileStep/", model.name).c_str(), compile)
        ->Unit(benchmark::kMillisecond);
  }
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) {
  weft::RegisterSteps();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
