// Measures the time of a training step (forward, backward, clip, AdamW), or of a forward pass for minilm-forward.
//
//   bazel run -c opt //bench:train_bench -- --model=gpt2 --threads=2 --steps=10
//   bazel run -c opt //bench:train_bench -- --model=charcpu --json
//   bazel run -c opt //bench:train_bench -- --model=babygpt --profile
//   bazel run -c opt //bench:train_bench -- --model=gpt2 --precision=bf16 --steps=200 --text=FILE
//
// The median excludes the first two steps; the best time excludes the first step.
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "weft/base/cores.h"
#include "weft/base/file.h"
#include "weft/base/status.h"
#include "weft/bench/command_line.h"
#include "weft/bench/op_times.h"
#include "weft/bench/row.h"
#include "weft/bench/step/bench_step.h"
#include "weft/core/random.h"
#include "weft/graph/run/runner.h"
#include "weft/lab/machine/measure.h"
#include "weft/lab/real_graphs.h"

namespace weft {
namespace {

struct Options {
  std::string model = "charcpu", precision = "f32", text;
  int64_t batch = 0, length = 0, layers = 0, heads = 0, width = 0, window = 0;  // 0: the model's
  int threads = 0, steps = 10;
  uint64_t memory_budget = 0;  // bytes; 0: no limit
  bool raise = true, pack = true, fuse = true, json = false, profile = false;
};

// The data of the steps: the same random tokens in each step, or windows at new random positions of a text.
class Batches {
 public:
  Batches(const BenchModel& model, const Options& options, std::string text)
      : batch_(options.batch),
        length_(options.length),
        text_(std::move(text)),
        x_(RandomTokens(batch_ * length_, model.vocabulary, 0)),
        y_(RandomTokens(batch_ * length_, model.vocabulary, 1)) {}

  void Next() {
    for (int64_t b = 0; b < batch_ && !text_.empty(); ++b) {
      const uint64_t positions = text_.size() - static_cast<size_t>(length_);
      const unsigned char* const from =
          reinterpret_cast<const unsigned char*>(text_.data()) + RandomStream{.seed = 1}.Below(positions, drawn_++);
      std::copy_n(from, length_, x_.begin() + b * length_);
      std::copy_n(from + 1, length_, y_.begin() + b * length_);
    }
  }
  const std::vector<int32_t>& tokens() const { return x_; }
  const std::vector<int32_t>& targets() const { return y_; }

 private:
  const int64_t batch_, length_;
  const std::string text_;
  std::vector<int32_t> x_, y_;
  uint64_t drawn_ = 0;
};

// Returns the contents of the file --text, or "" without that flag. The bytes of the file are the model's tokens, so
// each must be below its vocabulary size.
absl::StatusOr<std::string> ReadText(const Options& options, const BenchModel& model) {
  if (options.text.empty()) return std::string();
  WEFT_ASSIGN_OR_RETURN(std::string text, ReadFile(options.text));
  if (text.size() <= static_cast<size_t>(options.length)) {
    return InvalidArgument(options.text, " has ", text.size(), " bytes, wanted more than the ", options.length,
                           " of one text");
  }
  for (size_t i = 0; i < text.size(); ++i) {
    const int byte = static_cast<unsigned char>(text[i]);
    if (byte < model.vocabulary) continue;
    return InvalidArgument(options.text, ": byte ", i, " is ", byte, ", but ", model.name, " has ", model.vocabulary,
                           " tokens");
  }
  return text;
}

double PeakMegabytes() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

double Megabytes(size_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

struct Times {
  std::vector<double> seconds;  // of each step
  std::vector<double> results;  // loss of each step; for forward passes, one element of the output
  uint64_t checksum = 0;        // of the last result and, after training, of all parameters and states
};

double Mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

uint64_t Checksum(const Tensor& tensor) {
  return StableHash({reinterpret_cast<const char*>(tensor.data), tensor.type.bytes()});
}

absl::StatusOr<Times> RunSteps(const Graph& graph, const BenchStep& step, const Options& options, Batches* batches,
                               OpTimes* op_times) {
  Parameters parameters({.seed = 1});
  Runner runner(graph, &parameters, {.threads = options.threads, .timed = op_times != nullptr});
  std::vector<FeedPair> feeds = {{step.tokens, batches->tokens()}};
  if (step.targets) feeds.insert(feeds.end(), {{step.targets, batches->targets()}, {step.rate, 3e-4f}});
  Times times;
  for (int i = 0; i < options.steps; ++i) {
    batches->Next();
    const Clock::time_point start = Clock::now();
    const absl::StatusOr<Outputs> out = runner.Run(feeds);
    times.seconds.push_back(SecondsSince(start));
    if (!out.ok()) return out.status();
    if (i >= 2 && op_times != nullptr) op_times->Add(runner.tile_times());
    times.results.push_back(out->Scalar(step.result));
    if (i + 1 == options.steps) times.checksum = Checksum((*out)[step.result]);
  }
  for (const std::string& name : parameters.Names()) {
    if (step.update) times.checksum = 31 * times.checksum + Checksum(*parameters.Find(name));
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
  take(options.window, &model.window);
  if (options.batch == 0) options.batch = model.batch;
  if (options.length == 0) options.length = model.length;
  if (options.threads == 0) options.threads = Cores();
  absl::StatusOr<std::string> text = ReadText(options, model);
  if (!text.ok()) return Fail(text.status(), 1);
  Batches batches(model, options, *std::move(text));

  Tape tape;
  const BenchStep step = RecordStep(&tape, model, options.batch, options.length);
  if (!tape.status().ok()) return Fail(tape.status(), 2);  // for example, a width that is not a multiple of the heads
  CompileOptions compile_options = step.options;
  if (!options.raise) compile_options.without.insert(Pass::kRaise);
  if (!options.pack) compile_options.without.insert(Pass::kPack);
  if (!options.fuse) compile_options.without.insert(Pass::kFuse);
  if (options.precision == "bf16") compile_options.precision = kBF16;
  compile_options.memory_budget = options.memory_budget;
  const Clock::time_point start = Clock::now();
  const absl::StatusOr<Graph> graph = Compile(tape, compile_options);
  const double compile_seconds = SecondsSince(start);
  if (!graph.ok()) return Fail(graph.status(), 1);

  std::optional<OpTimes> op_times;
  if (options.profile) op_times.emplace(*graph);
  const absl::StatusOr<Times> times = RunSteps(*graph, step, options, &batches, op_times ? &*op_times : nullptr);
  if (!times.ok()) return Fail(times.status(), 1);

  const double median = Median({times->seconds.begin() + 2, times->seconds.end()});
  const MemoryFigures& memory = graph->compiled().memory;
  nlohmann::ordered_json row = {
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
      {"nodes", graph->compiled().calls.size()},
      {"groups", graph->compiled().groups.size()},
      {"tasks", graph->compiled().tasks.size()},
      {"planned_mb", Megabytes(memory.planned)},
      {"lower_bound_mb", Megabytes(memory.lower_bound)},
      {model.trains ? "loss" : "result", times->results.back()},
      {"checksum", absl::StrCat(absl::Hex(times->checksum, absl::kZeroPad16))},
  };
  if (!options.text.empty()) row["mean_loss"] = Mean(times->results);
  PrintRow(row, options.json);
  if (op_times) PrintProfile(*op_times, options, median);
  return 0;
}

std::string NotNegative(const std::string& text) {
  return text.find('-') == std::string::npos ? "" : "'" + text + "' is negative";
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("Measures training steps of models of published sizes, on one batch of random tokens or a text.",
               "train_bench");
  SetUp(&app);
  const auto size = [&](const char* flag, int64_t* value, const char* what, int64_t max) {
    app.add_option(flag, *value, std::string(what) + "; 0: the model's own number")->check(CLI::Range(int64_t{0}, max));
  };
  app.add_option("--model", options.model, "the model")->check(CLI::IsMember(RowNames(BenchModels())));
  size("--batch", &options.batch, "texts in a step", 1 << 16);
  size("--length", &options.length, "tokens of a text", 1 << 20);
  size("--layers", &options.layers, "number of blocks", 1000);
  size("--heads", &options.heads, "attention heads of a block", 1 << 16);
  size("--width", &options.width, "features of a token", 1 << 16);
  size("--window", &options.window, "a token sees the tokens at a smaller distance than this number", 1 << 20);
  app.add_option("--precision", options.precision, "number format of products and of the values between ops")
      ->check(CLI::IsMember({"f32", "bf16"}));
  app.add_option("--threads", options.threads, "number of threads; 0: the number of cores")->check(CLI::Range(0, 1024));
  app.add_option("--steps", options.steps, "number of steps; the first two don't count")
      ->check(CLI::Range(3, 1'000'000));
  app.add_option("--memory-budget", options.memory_budget,
                 "maximum number of bytes for the graph's values, such as 500M; 0: no limit")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/true))
      ->transform(CLI::Validator(NotNegative, ""));  // before AsSizeValue, which would read -1 as the largest number
  app.add_option("--raise", options.raise, "whether to replace known patterns by ops with fast kernels");
  app.add_option("--pack", options.pack, "whether to reorder weights for the products once a step");
  app.add_option("--fuse", options.fuse, "whether to run neighbouring nodes together, tile by tile");
  app.add_option("--text", options.text, "train on the bytes of this file, from new positions in each step");
  app.add_flag("--json", options.json, "print one JSON object instead of a table");
  app.add_flag("--profile", options.profile, "print where the time goes, op by op")->excludes("--json");
  return RunProgram(&app, argc, argv, [&] { return Measure(options); });
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) { return weft::Main(argc, argv); }
