// The time of one training step (forward, backward, clip, AdamW), or of one forward pass of minilm-forward.
//
//   bazel run -c opt //bench:train_bench -- --model=gpt2 --threads=2 --steps=10
//   bazel run -c opt //bench:train_bench -- --model=charcpu --json
//   bazel run -c opt //bench:train_bench -- --model=babygpt --profile
//
// The first two steps are left out of the median, the first one of the best.
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "weft/bench/command_line.h"
#include "weft/bench/measure.h"
#include "weft/bench/models.h"
#include "weft/bench/op_times.h"
#include "weft/core/cores.h"
#include "weft/core/random.h"
#include "weft/graph/runner.h"

namespace weft {
namespace {

struct Options {
  std::string model = "charcpu", precision = "f32";
  int64_t batch = 0, length = 0, layers = 0, heads = 0, width = 0;  // 0: the model's
  int threads = 0, steps = 10;
  uint64_t memory_budget = 0;  // bytes; 0: no limit
  bool raise = true, pack = true, fuse = true, json = false, profile = false;
};

std::vector<int32_t> RandomTokens(const BenchModel& model, int64_t count, uint32_t stream) {
  const RandomStream random = {.seed = 1, .stream = stream};
  std::vector<int32_t> tokens(static_cast<size_t>(count));
  for (size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = static_cast<int32_t>(random.Below(static_cast<uint64_t>(model.vocabulary), i));
  }
  return tokens;
}

double PeakMegabytes() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

double Megabytes(size_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

struct Times {
  std::vector<double> seconds;  // of each step
  double result = 0;            // the last loss; of a forward pass an element of what it gives
};

absl::StatusOr<Times> RunSteps(const Graph& graph, const BenchModel& model, const BenchStep& step,
                               const Options& options, OpTimes* op_times) {
  Parameters parameters({.seed = 1});
  Runner runner(graph, &parameters, {.threads = options.threads});
  const int64_t count = options.batch * options.length;
  const std::vector<int32_t> x = RandomTokens(model, count, 0), y = RandomTokens(model, count, 1);
  std::vector<FeedPair> feeds = {{step.tokens, x}};
  if (step.targets) feeds.insert(feeds.end(), {{step.targets, y}, {step.rate, 3e-4f}});
  Times times;
  for (int i = 0; i < options.steps; ++i) {
    if (i == 2 && op_times != nullptr) op_times->Reset();
    const Clock::time_point start = Clock::now();
    const absl::StatusOr<Outputs> out = runner.Run(feeds);
    times.seconds.push_back(SecondsSince(start));
    if (!out.ok()) return out.status();
    times.result = out->Scalar(step.result);
  }
  return times;
}

void PrintProfile(const OpTimes& op_times, const Options& options, double step_seconds) {
  const std::vector<OpTimes::Row> rows = op_times.Rows();
  const double runs = options.steps - 2;
  const auto print = [&](const std::string& name, double seconds, const OpTimes::Row& row) {
    seconds /= runs;
    std::printf("%-44s %10.3f %6.1f%% %9.1f %9.1f %8lld\n", name.c_str(), seconds * 1e3,
                seconds / (options.threads * step_seconds) * 100, row.flops / seconds * 1e-9,
                row.bytes / seconds * 1e-9, static_cast<long long>(row.tiles));
  };
  std::printf("%-44s %10s %7s %9s %9s %8s\n", "op", "core ms", "share", "GFLOP/s", "GB/s", "tiles");
  double busy = 0;
  for (size_t begin = 0, end; begin < rows.size(); begin = end) {
    OpTimes::Row sum;
    for (end = begin; end < rows.size() && rows[end].op == rows[begin].op; ++end) {
      sum.seconds += rows[end].seconds;
      sum.flops += rows[end].flops;
      sum.bytes += rows[end].bytes;
      sum.tiles += rows[end].tiles;
    }
    busy += sum.seconds;
    print(rows[begin].op, sum.seconds, sum);
    for (size_t i = begin; i < end && end - begin > 1; ++i) {
      if (rows[i].seconds > 0.01 * runs * options.threads * step_seconds) {
        print("    " + rows[i].type, rows[i].seconds, rows[i]);
      }
    }
  }
  const double idle = options.threads * step_seconds - busy / runs;
  std::printf("%-44s %10.3f %6.1f%%\n", "scheduling and waiting", idle * 1e3,
              idle / (options.threads * step_seconds) * 100);
}

int Fail(const absl::Status& status, int code) {
  std::fprintf(stderr, "train_bench: %s\n", std::string(status.message()).c_str());
  return code;
}

int Measure(Options options) {
  BenchModel model = *FindBenchModel(options.model);
  const auto take = [](int64_t flag, int64_t* of_model) { *of_model = flag > 0 ? flag : *of_model; };
  take(options.layers, &model.layers);
  take(options.heads, &model.heads);
  take(options.width, &model.width);
  if (options.batch == 0) options.batch = model.batch;
  if (options.length == 0) options.length = model.length;
  if (options.threads == 0) options.threads = Cores();

  Tape tape;
  const BenchStep step = RecordStep(&tape, model, options.batch, options.length);
  if (!tape.status().ok()) return Fail(tape.status(), 2);  // a width that the heads don't divide, ...
  CompileOptions compile_options = OptionsFor(step);
  compile_options.raise = options.raise;
  compile_options.pack = options.pack;
  compile_options.fuse = options.fuse;
  if (options.precision == "bf16") compile_options.precision = kBF16;
  compile_options.memory_budget = options.memory_budget;
  const Clock::time_point start = Clock::now();
  const absl::StatusOr<Graph> graph = Compile(tape, compile_options);
  const double compile_seconds = SecondsSince(start);
  if (!graph.ok()) return Fail(graph.status(), 1);

  std::optional<OpTimes> op_times;
  if (options.profile) op_times.emplace(*graph);
  const absl::StatusOr<Times> times =
      RunSteps(op_times ? op_times->graph() : *graph, model, step, options, op_times ? &*op_times : nullptr);
  if (!times.ok()) return Fail(times.status(), 1);

  const double median = Median({times->seconds.begin() + 2, times->seconds.end()});
  const MemoryFigures& memory = graph->compiled().memory;
  const nlohmann::ordered_json row = {
      {"model", model.name},
      {"batch", options.batch},
      {"length", options.length},
      {"precision", options.precision},
      {"threads", options.threads},
      {"median_ms", median * 1e3},
      {"best_ms", *std::min_element(times->seconds.begin() + 1, times->seconds.end()) * 1e3},
      {"first_step_ms", times->seconds[0] * 1e3},
      {"tokens_per_second", static_cast<double>(options.batch * options.length) / median},
      {"gflops", step.flops / median * 1e-9},
      {"peak_rss_mb", PeakMegabytes()},
      {"compile_ms", compile_seconds * 1e3},
      {"nodes", graph->compiled().steps.size()},
      {"groups", graph->compiled().groups.size()},
      {"tasks", graph->compiled().tasks.size()},
      {"planned_mb", Megabytes(memory.planned)},
      {"lower_bound_mb", Megabytes(memory.lower_bound)},
      {model.trains ? "loss" : "result", times->result},
  };
  if (options.json) {
    std::printf("%s\n", row.dump().c_str());
  } else {
    for (const auto& [key, value] : row.items()) {
      value.is_number_float() ? std::printf("%-18s %.2f\n", key.c_str(), value.get<double>())
                              : std::printf("%-18s %s\n", key.c_str(), value.dump().c_str());
    }
  }
  if (op_times) PrintProfile(*op_times, options, median);
  return 0;
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("Measures training steps of models of published sizes, on random tokens.", "train_bench");
  SetUp(&app);
  const auto size = [&](const char* flag, int64_t* value, const char* what, int64_t most) {
    app.add_option(flag, *value, std::string(what) + "; 0: the model's own")->check(CLI::Range(int64_t{0}, most));
  };
  app.add_option("--model", options.model, "the model")->check(CLI::IsMember(BenchModelNames()));
  size("--batch", &options.batch, "texts in a step", 1 << 16);
  size("--length", &options.length, "tokens of a text", 1 << 20);
  size("--layers", &options.layers, "blocks", 1000);
  size("--heads", &options.heads, "of each attention", 1 << 16);
  size("--width", &options.width, "features of a token", 1 << 16);
  app.add_option("--precision", options.precision, "of products and what flows between ops")
      ->check(CLI::IsMember({"f32", "bf16"}));
  app.add_option("--threads", options.threads, "0: as many as there are cores")->check(CLI::Range(0, 1024));
  app.add_option("--steps", options.steps, "to run; the first two don't count")->check(CLI::Range(3, 1'000'000));
  app.add_option("--memory-budget", options.memory_budget, "bytes that values may take, like 500M; 0: no limit")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/true));
  app.add_option("--raise", options.raise, "whether patterns become ops of their own");
  app.add_option("--pack", options.pack, "whether weights are brought into the products' order once a step");
  app.add_option("--fuse", options.fuse, "whether neighbours run together, tile by tile");
  app.add_flag("--json", options.json, "one object in place of a table");
  app.add_flag("--profile", options.profile, "prints a table of where the time goes, op by op")->excludes("--json");
  return RunProgram(&app, argc, argv, [&] { return Measure(options); });
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) { return weft::Main(argc, argv); }
