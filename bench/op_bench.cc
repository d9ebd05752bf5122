// Measures how fast single ops run in a graph, relative to the machine's limits on the same threads in the same
// process.
//
// Row ops and updates are in GB/s. They are compared with the memory's bandwidth for reading, and with a copy of an
// array of the same size, which may fit a cache. Attention and products are in GFLOP/s, compared with the peak in f32.
//
//   bazel run -c opt //bench:op_bench
//   bazel run -c opt //bench:op_bench -- --threads=1 --benchmark_filter=softmax
#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "weft/base/cores.h"
#include "weft/bench/command_line.h"
#include "weft/core/random.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/run/runner.h"
#include "weft/lab/machine/peak.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

constexpr int64_t kRows = 4096, kCols = 768;
constexpr size_t kBeyondCaches = size_t{256} << 20;  // 256 MiB: more than the caches hold
constexpr double kPeakSeconds = 0.3;                 // seconds to measure each peak

using Operands = std::vector<std::pair<Var, std::vector<float>>>;

// Records f32 inputs of these shapes, and returns them with random values in [-1, 1).
Operands Inputs(Tape* tape, std::initializer_list<Shape> shapes) {
  Operands operands;
  for (const Shape& shape : shapes) {
    const RandomStream random = {.stream = static_cast<uint32_t>(operands.size())};
    std::vector<float> values(static_cast<size_t>(shape.elements()));
    for (size_t i = 0; i < values.size(); ++i) values[i] = 2 * random.Uniform(i) - 1;
    operands.emplace_back(tape->Input(std::string(1, static_cast<char>('a' + operands.size())), {kF32, shape}),
                          std::move(values));
  }
  return operands;
}

// Compiles the graph of `options`, and runs it as often as the benchmark asks. Returns the mean seconds of an
// execution.
double RunGraph(benchmark::State& state, const Tape& tape, const Operands& operands, const CompileOptions& options,
                int threads) {
  const absl::StatusOr<Graph> graph = Compile(tape, options);
  const auto fail = [&](const absl::Status& status) {
    state.SkipWithError(std::string(status.message()).c_str());
    return 1.0;
  };
  if (!graph.ok()) return fail(graph.status());
  Parameters parameters;
  Runner runner(*graph, &parameters, {.threads = threads});
  const std::vector<FeedPair> feeds(operands.begin(), operands.end());
  // The first execution takes its memory from the system.
  const absl::StatusOr<Outputs> first = runner.Run(feeds);
  if (!first.ok()) return fail(first.status());
  const Clock::time_point start = Clock::now();
  for (auto _ : state) {
    const absl::StatusOr<Outputs> out = runner.Run(feeds);
    if (!out.ok()) return fail(out.status());
  }
  return SecondsSince(start) / static_cast<double>(state.iterations());
}

// The machine's limits for the number of threads that all benchmarks use.
struct Peaks {
  int threads = 1;
  double flops = 0, memory = 0;
  std::map<int64_t, double> copies;  // bytes per second of a copy, by the size of an array in bytes

  explicit Peaks(int wanted) : threads(wanted > 0 ? wanted : Cores()) {
    Team team(threads);
    flops = PeakF32(&team, kPeakSeconds);
    memory = PeakBandwidth(&team, kBeyondCaches, kPeakSeconds).read;
  }
  double Copy(int64_t bytes) {
    double& copy = copies[bytes];
    if (copy == 0) {
      Team team(threads);
      copy = PeakBandwidth(&team, static_cast<size_t>(bytes), kPeakSeconds).copy;
    }
    return copy;
  }
};

void Register(const std::string& name, const std::function<void(benchmark::State&)>& run) {
  benchmark::RegisterBenchmark(name.c_str(), run)->UseRealTime()->Unit(benchmark::kMicrosecond);
}

// Reports the bandwidth of an execution that reads and writes `bytes` in `seconds`. Gives it in GB/s, in percent of the
// memory's, and in percent of `copy`, the bandwidth of copying an array.
void AddBandwidth(benchmark::State& state, const Peaks& peaks, double copy, double bytes, double seconds) {
  const double bandwidth = bytes / seconds;
  state.counters["GB/s"] = bandwidth * 1e-9;
  state.counters["%_of_memory"] = 100 * bandwidth / peaks.memory;
  state.counters["%_of_copy"] = 100 * bandwidth / copy;
}

// Registers the op that `record` records, on `reads` inputs [4096, 768]: one or two. The result must not be larger than
// an input.
void RegisterRowOp(const char* name, Peaks* peaks, int reads, const std::function<Var(VarSpan)>& record) {
  Register(name, [=](benchmark::State& state) {
    Tape tape;
    const Shape shape = {kRows, kCols};
    const Operands operands = reads == 1 ? Inputs(&tape, {shape}) : Inputs(&tape, {shape, shape});
    VarList inputs;
    for (const auto& [input, values] : operands) inputs.push_back(input);
    const int64_t array = shape.elements() * static_cast<int64_t>(sizeof(float));
    const double copy = peaks->Copy(array);
    const Var result = record(inputs);
    const double seconds = RunGraph(state, tape, operands, {.fetch = {result}}, peaks->threads);
    AddBandwidth(state, *peaks, copy, static_cast<double>(reads * array + result.shape().elements() * 4), seconds);
  });
}

// Registers the update of a weight [4096, 768] with `states` states. The update reads the gradient, and reads and
// writes the weight and its states. `record` takes the weight, its states, the gradient, rate, grad_scale, and the
// step.
void RegisterUpdate(const char* name, Peaks* peaks, int states, const std::function<VarList(VarSpan)>& record) {
  Register(name, [=](benchmark::State& state) {
    Tape tape;
    const Shape shape = {kRows, kCols};
    VarList inputs;
    for (int i = 0; i <= states; ++i) inputs.push_back(tape.State(std::to_string(i), {kF32, shape}, Zeros()));
    Operands operands = Inputs(&tape, {shape, {}, {}});
    operands[1].second = {1e-3f};  // rate
    operands[2].second = {1};      // grad_scale
    for (const auto& [input, values] : operands) inputs.push_back(input);
    inputs.push_back(Fill(&tape, {kI32, {}}, 1));
    const int64_t array = shape.elements() * static_cast<int64_t>(sizeof(float));
    const double copy = peaks->Copy(array);
    const double seconds = RunGraph(state, tape, operands, {.update = record(inputs)}, peaks->threads);
    AddBandwidth(state, *peaks, copy, static_cast<double>((2 * states + 3) * array), seconds);
  });
}

void AddFlops(benchmark::State& state, const Peaks& peaks, double flops_per_second) {
  state.counters["GFLOP/s"] = flops_per_second * 1e-9;
  state.counters["%_of_peak"] = 100 * flops_per_second / peaks.flops;
}

// The sizes of one benchmark of attention. A shape [B, T, C] has the columns of all heads side by side.
struct AttentionCase {
  std::string name;
  Shape shape;
  int64_t heads = 1;
  bool causal = false;
};

// Returns the sizes of models, and of batches with heads 32, 64 and 128 wide and 64 to 8,192 positions. The number of
// texts times heads falls as the number of positions grows. So all sizes of one width have the same number of elements,
// except 8,192 positions, which have twice as many. Time grows with the number of positions.
std::vector<AttentionCase> AttentionCases() {
  std::vector<AttentionCase> all = {{"gpt2", {4, 64, 768}, 12, true},
                                    {"bert", {8, 128, 768}, 12, false},
                                    {"babygpt", {8, 256, 384}, 6, true},
                                    {"charcpu", {12, 64, 128}, 4, true}};
  for (const int64_t width : {32, 64, 128}) {
    for (const int64_t positions : {64, 128, 256, 512, 1024, 2048, 4096, 8192}) {
      for (const bool causal : {false, true}) {
        const int64_t heads = std::clamp<int64_t>(4096 / positions, 1, 8);
        const int64_t batch = std::max<int64_t>(1, 512 / positions);
        all.push_back({"d" + std::to_string(width) + "/t" + std::to_string(positions) + (causal ? "/causal" : "/full"),
                       {batch, positions, heads * width},
                       heads,
                       causal});
      }
    }
  }
  return all;
}

// Registers attention, alone or with the gradients of query, key and value by Σ y · dy. Each pair of positions counts 4
// FLOPs for each feature, and 8 more with the gradients. Pairs that a causal mask hides are counted too.
void RegisterAttention(const AttentionCase& sizes, Peaks* peaks, bool gradient) {
  Register("attention/" + sizes.name + (gradient ? "/gradient" : "/forward"), [=](benchmark::State& state) {
    Tape tape;
    VarList inputs;  // parameters, because an execution copies its feeds
    for (const char* name : {"query", "key", "value", "dy"}) {
      inputs.push_back(tape.Parameter(name, {kF32, sizes.shape}, Gaussian(1)));
    }
    const Var dy = inputs.back();
    inputs.pop_back();
    const Var y =
        ScaledDotProductAttention(inputs[0], inputs[1], inputs[2], {.heads = sizes.heads, .causal = sizes.causal});
    const VarList fetch = gradient ? Gradient(Sum(y * dy), inputs) : VarList{y};
    const double seconds = RunGraph(state, tape, {}, {.fetch = fetch}, peaks->threads);
    state.SetLabel(absl::StrCat(sizes.shape.dim(0), ",", sizes.heads, ",", sizes.shape.dim(1), ",",
                                sizes.shape.dim(2) / sizes.heads, ",", sizes.causal ? "True" : "False"));
    const double pairs_features = static_cast<double>(sizes.shape.elements() * sizes.shape.dim(1));
    AddFlops(state, *peaks, (gradient ? 12 : 4) * pairs_features / seconds);
  });
}

void RegisterProduct(const char* of, Peaks* peaks, const Shape& a, const Shape& b, MatMulOptions options) {
  Register(std::string("matmul/") + of, [=](benchmark::State& state) {
    Tape tape;
    const Operands operands = Inputs(&tape, {a, b});
    const Var result = MatMul(operands[0].first, operands[1].first, options);
    const double seconds = RunGraph(state, tape, operands, {.fetch = {result}}, peaks->threads);
    AddFlops(state, *peaks, 2 * static_cast<double>(a.elements() * b.dim(options.transpose_b ? -2 : -1)) / seconds);
  });
}

// Registers functions that are composed of other ops, and a few that have a kernel. A composite that is much slower
// than a copy of its input may deserve a kernel.
void RegisterComposites(Peaks* peaks) {
  const auto one = [&](const char* name, Var (*record)(Var x)) {
    RegisterRowOp(name, peaks, 1, [=](VarSpan in) { return record(in[0]); });
  };
  const auto two = [&](const char* name, Var (*record)(Var a, Var b)) {
    RegisterRowOp(name, peaks, 2, [=](VarSpan in) { return record(in[0], in[1]); });
  };
  one("composite/square", Square);
  one("composite/rsqrt", Rsqrt);
  one("composite/clamp", [](Var x) { return Clamp(x, -0.5, 0.5); });
  one("composite/sign", Sign);
  one("composite/silu", Silu);
  one("composite/pow", [](Var x) { return Pow(x, 3); });
  one("composite/mean", [](Var x) { return Mean(x, -1); });
  one("composite/variance", [](Var x) { return Variance(x, {-1}); });
  one("composite/variance_of_columns", [](Var x) { return Variance(x, {0}); });
  one("composite/norm", [](Var x) { return Norm(x, {-1}); });
  one("composite/min", [](Var x) { return Min(x, {-1}); });
  one("composite/prod", [](Var x) { return Prod(x, {-1}); });
  one("composite/log_sum_exp", [](Var x) { return LogSumExp(x, -1); });
  one("composite/triu", [](Var x) { return Triu(x); });
  one("composite/batch_norm", [](Var x) {
    const TensorType type = {kF32, {kCols}};
    const Var one = Fill(x.tape, type, 1), zero = Fill(x.tape, type, 0);
    return BatchNorm(x, one, zero, zero, one).y;
  });
  one("composite/take_along",
      [](Var x) { return TakeAlong(x, BroadcastTo(Flip(Iota(x.tape, kI32, kCols), 0), x.shape()), -1); });
  two("composite/greater", [](Var a, Var b) { return Cast(Greater(a, b), kF32); });
  two("composite/where", [](Var a, Var b) { return Where(Less(a, b), a, b); });
  two("composite/rotary", [](Var a, Var b) {
    const Var angles = Slice(b, 1, 0, kCols / 2);
    return Rotary(a, angles, angles, RotaryLayout::kHalves);
  });
  two("composite/binary_cross_entropy", [](Var a, Var b) { return BinaryCrossEntropy(a, b, Reduction::kNone); });
  two("composite/mean_squared_error", [](Var a, Var b) { return MeanSquaredError(a, b); });
  two("composite/kl_divergence", [](Var a, Var b) { return KlDivergence(a, Abs(b)); });
  RegisterUpdate("composite/adam", peaks, 2,
                 [](VarSpan in) { return AdamUpdate(in[0], in[1], in[2], in[3], in[4], in[5], in[6], {}); });
  RegisterUpdate("composite/adagrad", peaks, 1,
                 [](VarSpan in) { return AdagradUpdate(in[0], in[1], in[2], in[3], in[4], in[5], {}); });
  RegisterUpdate("composite/lion", peaks, 1,
                 [](VarSpan in) { return LionUpdate(in[0], in[1], in[2], in[3], in[4], {}); });
}

void RegisterAll(Peaks* peaks) {
  RegisterComposites(peaks);
  RegisterRowOp("softmax", peaks, 1, [](VarSpan in) { return Softmax(in[0]); });
  RegisterRowOp("layer_norm", peaks, 1, [](VarSpan in) {
    const TensorType type = {kF32, {kCols}};
    return LayerNorm(in[0], Fill(in[0].tape, type, 1), Fill(in[0].tape, type, 0));
  });
  RegisterRowOp("gelu", peaks, 1, [](VarSpan in) { return Gelu(in[0], GeluForm::kTanh); });
  RegisterRowOp("gelu_erf", peaks, 1, [](VarSpan in) { return Gelu(in[0], GeluForm::kErf); });
  RegisterRowOp("dropout", peaks, 1, [](VarSpan in) { return Dropout(in[0], 0.1); });
  RegisterRowOp("add", peaks, 2, [](VarSpan in) { return in[0] + in[1]; });
  RegisterUpdate("adamw", peaks, 2,
                 [](VarSpan in) { return AdamWUpdate(in[0], in[1], in[2], in[3], in[4], in[5], in[6], {}); });
  RegisterUpdate("sgd", peaks, 1,
                 [](VarSpan in) { return SgdUpdate(in[0], in[1], in[2], in[3], in[4], {.momentum = 0.9}); });

  for (const AttentionCase& sizes : AttentionCases()) {
    for (const bool gradient : {false, true}) RegisterAttention(sizes, peaks, gradient);
  }
  // The three products of a training step: the forward product, and the gradients of activations and of weights.
  RegisterProduct("gpt2/forward", peaks, {256, 768}, {3072, 768}, {.transpose_b = true});
  RegisterProduct("gpt2/activations", peaks, {256, 3072}, {3072, 768}, {});
  RegisterProduct("gpt2/weights", peaks, {256, 3072}, {256, 768}, {.transpose_a = true});
  RegisterProduct("charcpu/forward", peaks, {768, 128}, {512, 128}, {.transpose_b = true});
  RegisterProduct("64x64x64", peaks, {128, 64, 64}, {128, 64, 64}, {});
}

int Main(int argc, char** argv) {
  int threads = 0;
  CLI::App app("Measures single ops. Flags that begin with --benchmark_ are Google Benchmark's.", "op_bench");
  SetUp(&app);
  app.add_option("--threads", threads, "0: as many as there are cores")->check(CLI::Range(0, 1024));
  std::vector<char*> ours = {argv[0]}, theirs = {argv[0]};
  for (int i = 1; i < argc; ++i) {
    (std::string(argv[i]).starts_with("--benchmark_") ? theirs : ours).push_back(argv[i]);
  }
  return RunProgram(&app, static_cast<int>(ours.size()), ours.data(), [&] {
    int count = static_cast<int>(theirs.size());
    benchmark::Initialize(&count, theirs.data());
    if (count > 1) throw CLI::ExtrasError({theirs[1]});
    Peaks peaks(threads);
    benchmark::AddCustomContext("threads", std::to_string(peaks.threads));
    benchmark::AddCustomContext("memory GB/s, read", std::to_string(peaks.memory * 1e-9));
    benchmark::AddCustomContext("peak GFLOP/s, f32", std::to_string(peaks.flops * 1e-9));
    RegisterAll(&peaks);
    benchmark::RunSpecifiedBenchmarks();
    benchmark::Shutdown();
    return 0;
  });
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) { return weft::Main(argc, argv); }
