// Measures how fast a GPT with random weights generates tokens, and how fast it reads prompts, beside the bandwidth
// with which this machine reads memory.
//
//   bazel run -c opt //bench:generate_bench -- --model=gpt2 --mode=decode --precision=q8_0 --threads=2
//   bazel run -c opt //bench:generate_bench -- --model=gpt2 --mode=prefill --length=1024 --json
//
// decode: each of --batch texts has a prompt of 16 tokens and grows by --length tokens. The first token is timed alone.
// prefill: each prompt has --length tokens, and one token follows. Speeds are medians of several rounds.
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "weft/base/cores.h"
#include "weft/base/status.h"
#include "weft/bench/command_line.h"
#include "weft/bench/row.h"
#include "weft/core/block_formats.h"
#include "weft/inference/generate/generate.h"
#include "weft/lab/machine/measure.h"
#include "weft/lab/machine/peak.h"
#include "weft/lab/real_graphs.h"

namespace weft {
namespace {

struct Options {
  std::string model = "gpt2", mode = "decode", precision = "f32";
  int64_t batch = 1, length = 128, layers = 0, window = 0, repeats = 5, draft = 0;
  int threads = 0;
  bool json = false;
};

constexpr int64_t kPrompt = 16;  // tokens of a prompt in mode decode

GptConfig ConfigOf(const Options& options) {
  const BenchModel& model = *FindBenchModel(options.model);
  return {.vocabulary = model.vocabulary,
          .context = std::max(model.context, kPrompt + options.length),
          .layers = options.layers > 0 ? options.layers : model.layers,
          .heads = model.heads,
          .width = model.width,
          .attention = {.patterns = {{.window = options.window}}}};
}

struct Timing {
  double first = 0, others = 0;  // seconds until the first tokens of all texts; seconds for all other tokens
};

absl::StatusOr<Timing> Generate(Generator* generator, const Options& options, int64_t vocabulary) {
  const bool decode = options.mode == "decode";
  std::vector<std::vector<int32_t>> prompts;
  for (int64_t b = 0; b < options.batch; ++b) {
    prompts.push_back(RandomTokens(decode ? kPrompt : options.length, vocabulary, static_cast<uint32_t>(b)));
  }
  Timing timing;
  int64_t begun = 0;
  std::vector<bool> has_token(prompts.size());
  const Clock::time_point start = Clock::now();
  const auto texts = generator->Generate(
      prompts, {.sampling = {.temperature = 0}, .length = decode ? options.length : 1, .draft = options.draft},
      [&](const GeneratedToken& next) {
        if (!has_token[next.prompt] && ++begun == options.batch) timing.first = SecondsSince(start);
        has_token[next.prompt] = true;
        return true;
      });
  if (!texts.ok()) return texts.status();
  timing.others = SecondsSince(start) - timing.first;
  return timing;
}

int64_t WeightBytes(const Parameters& parameters) {
  int64_t bytes = 0;
  for (const std::string& name : parameters.Names(Parameters::kWeights)) {
    if (name != "wpe.weight") bytes += static_cast<int64_t>(parameters.Find(name)->type.bytes());  // one row is read
  }
  return bytes;
}

absl::Status Measure(Options options) {
  if (options.threads == 0) options.threads = Cores();
  GeneratorOptions how = {.runtime = {.batch = options.batch, .threads = options.threads}};
  ParseDType(options.precision, &how.runtime.weights.emplace());
  const GptConfig config = ConfigOf(options);
  Parameters parameters({.seed = 1});
  WEFT_ASSIGN_OR_RETURN(const auto generator, Generator::Create(config, &parameters, how));
  std::vector<double> first, speed;
  const bool decode = options.mode == "decode";
  for (int64_t i = 0; i <= options.repeats; ++i) {
    WEFT_ASSIGN_OR_RETURN(const Timing timing, Generate(generator.get(), options, config.vocabulary));
    if (i == 0) continue;  // compiles the graphs
    const double batch = static_cast<double>(options.batch);
    first.push_back(timing.first);
    speed.push_back(decode ? batch * static_cast<double>(options.length - 1) / timing.others
                           : batch * static_cast<double>(options.length) / timing.first);
  }
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);  // before the arrays whose reading is measured exist
  Team team(options.threads);
  const Bandwidth bandwidth = PeakBandwidth(&team, size_t{256} << 20, 0.3);
  const double tokens = Median(speed);
  const Generator::Counts& counts = generator->counts();
  const double right = static_cast<double>(counts.accepted) / static_cast<double>(counts.executions);
  const double batch = static_cast<double>(options.batch);
  const double executions = decode ? tokens / (batch + right) : tokens / (batch * static_cast<double>(options.length));
  const nlohmann::ordered_json row = {
      {"model", options.model},
      {"mode", options.mode},
      {"batch", options.batch},
      {"length", options.length},
      {"window", options.window},
      {"precision", options.precision},
      {"threads", options.threads},
      {"tokens_per_second", tokens},
      {"accepted_per_execution", right},
      {"weight_gb_per_second", executions * static_cast<double>(WeightBytes(parameters)) * 1e-9},
      {"read_gb_per_second", bandwidth.read * 1e-9},
      {"first_token_ms", Median(first) * 1e3},
      {"peak_rss_mb", static_cast<double>(usage.ru_maxrss) / 1024}};
  PrintRow(row, options.json, /*width=*/22);
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("Measures how fast a GPT with random weights generates tokens or reads prompts.", "generate_bench");
  SetUp(&app);
  app.add_option("--model", options.model, "sizes of the model")->check(CLI::IsMember({"gpt2", "babygpt", "charcpu"}));
  app.add_option("--mode", options.mode, "generate tokens (decode) or read prompts (prefill)")
      ->check(CLI::IsMember({"decode", "prefill"}));
  app.add_option("--batch", options.batch, "number of texts at once")->check(CLI::Range(1, 4096));
  app.add_option("--length", options.length, "tokens to generate for each text, or tokens of each prompt")
      ->check(CLI::Range(2, 1 << 20));
  app.add_option("--draft", options.draft, "tokens to guess ahead by looking up the last ones")
      ->check(CLI::Range(0, 47));
  app.add_option("--layers", options.layers, "number of layers; 0: the model's own")->check(CLI::Range(0, 1 << 12));
  app.add_option("--window", options.window, "number of tokens that a token sees, itself included; 0: no limit")
      ->check(CLI::Range(0, 1 << 20));
  app.add_option("--precision", options.precision, "format of the weights")->check(CLI::IsMember(WeightFormatNames()));
  app.add_option("--threads", options.threads, "number of threads; 0: the number of cores")->check(CLI::Range(0, 1024));
  app.add_option("--repeats", options.repeats, "texts of which the median is taken")->check(CLI::Range(1, 1000));
  app.add_flag("--json", options.json, "print one JSON object");
  return RunProgram(&app, argc, argv, [&] { return ExitCode("generate_bench", Measure(options)); });
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) { return weft::Main(argc, argv); }
