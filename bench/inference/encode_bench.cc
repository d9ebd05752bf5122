// Measures the forward pass of an encoder of MiniLM's sizes with random weights.
//
//   bazel run -c opt //bench:encode_bench -- --batch=32 --length=128 --precision=q8_0 --threads=2
//
// The time is the median of the repeats. A forward pass before them is not counted, because it touches all memory for
// the first time.
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "weft/base/cores.h"
#include "weft/base/status.h"
#include "weft/bench/command_line.h"
#include "weft/bench/row.h"
#include "weft/core/block_formats.h"
#include "weft/core/parameters.h"
#include "weft/core/tape.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/run/runner.h"
#include "weft/lab/machine/measure.h"
#include "weft/lab/real_graphs.h"

namespace weft {
namespace {

struct Options {
  std::string precision = "f32";
  int64_t batch = 32, length = 128, repeats = 10;
  int threads = 0;
  bool json = false;
};

absl::Status Measure(Options options) {
  if (options.threads == 0) options.threads = Cores();
  const BenchModel& model = *FindBenchModel("minilm-forward");
  Tape tape;
  const RecordedModel recorded = RecordModel(&tape, model, options.batch, options.length);
  CompileOptions how = {.fetch = {recorded.result}, .mode = kEval};
  ParseDType(options.precision, &how.weights);
  WEFT_ASSIGN_OR_RETURN(Graph graph, Compile(tape, how));
  Parameters parameters({.seed = 1});
  Runner runner(std::move(graph), &parameters, {.threads = options.threads});
  const std::vector<int32_t> tokens = RandomTokens(options.batch * options.length, model.vocabulary, /*stream=*/0);
  std::vector<double> seconds;
  for (int64_t i = 0; i <= options.repeats; ++i) {
    const Clock::time_point start = Clock::now();
    WEFT_RETURN_IF_ERROR(runner.Run({{recorded.tokens, tokens}}).status());
    if (i > 0) seconds.push_back(SecondsSince(start));
  }
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  const double median = Median(seconds);
  PrintRow({{"batch", options.batch},
            {"length", options.length},
            {"precision", options.precision},
            {"threads", options.threads},
            {"median_ms", median * 1e3},
            {"texts_per_second", static_cast<double>(options.batch) / median},
            {"peak_rss_mb", static_cast<double>(usage.ru_maxrss) / 1024}},
           options.json, /*width=*/22);
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("Measures the forward pass of an encoder of MiniLM's sizes with random weights.", "encode_bench");
  SetUp(&app);
  app.add_option("--batch", options.batch, "number of texts")->check(CLI::Range(1, 1 << 16));
  app.add_option("--length", options.length, "tokens of each text")->check(CLI::Range(1, 1 << 16));
  app.add_option("--precision", options.precision, "format of the weights")->check(CLI::IsMember(WeightFormatNames()));
  app.add_option("--threads", options.threads, "number of threads; 0: the number of cores")->check(CLI::Range(0, 1024));
  app.add_option("--repeats", options.repeats, "forward passes of which the median is taken")
      ->check(CLI::Range(1, 1000));
  app.add_flag("--json", options.json, "print one JSON object");
  return RunProgram(&app, argc, argv, [&] { return ExitCode("encode_bench", Measure(options)); });
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) { return weft::Main(argc, argv); }
