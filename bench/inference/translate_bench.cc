// Measures how many sentences a run of `weft train translate` translates in a second.
//
//   bazel run -c opt //bench:translate_bench -- --model=RUN --source=FILE --beam=5 --batch=32 --threads=2
//
// All lines of the file are translated in each repeat. The speed is the median of the repeats; a translation before the
// first of them compiles the graphs. The time includes neither tokenizers nor the reading of files.
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "weft/base/cores.h"
#include "weft/base/status.h"
#include "weft/bench/command_line.h"
#include "weft/bench/row.h"
#include "weft/core/block_formats.h"
#include "weft/inference/generate/line_translator.h"
#include "weft/lab/machine/measure.h"
#include "weft/text/data/lines.h"

namespace weft {
namespace {

struct Options {
  std::string model, source, shortlist, precision = "f32", out;
  int64_t beam = 1, batch = 32, repeats = 3;
  int threads = 0;
  bool json = false;
};

absl::Status Measure(const Options& options) {
  WEFT_ASSIGN_OR_RETURN(OpenedTransformer opened, OpenTransformer(options.model));
  LineTranslatorOptions how = {.search = opened.search, .runtime = {.batch = options.batch}};
  how.search.beam = options.beam;
  how.runtime.threads = options.threads == 0 ? Cores() : options.threads;
  how.shortlist = options.shortlist;
  ParseDType(options.precision, &how.runtime.weights.emplace());
  WEFT_ASSIGN_OR_RETURN(const auto translator, LineTranslator::Create(std::move(opened), how));
  LineReader reader({options.source});
  WEFT_ASSIGN_OR_RETURN(const TextLines lines, reader.Next(/*max_lines=*/size_t{1} << 20));
  if (lines.lines.empty()) return InvalidArgument(options.source, " has no lines");
  std::vector<std::vector<int32_t>> sources;
  int64_t tokens = 0;
  for (const std::string& line : lines.lines) {
    WEFT_ASSIGN_OR_RETURN(sources.emplace_back(), translator->Encode(line));
  }
  std::vector<double> seconds;
  for (int64_t i = 0; i <= options.repeats; ++i) {
    const Clock::time_point start = Clock::now();
    WEFT_ASSIGN_OR_RETURN(const auto translations, translator->Translate(sources));
    if (i > 0) seconds.push_back(SecondsSince(start));
    tokens = 0;
    for (const std::vector<Hypothesis>& best : translations) tokens += static_cast<int64_t>(best[0].tokens.size()) + 1;
    if (i > 0 || options.out.empty()) continue;
    WEFT_ASSIGN_OR_RETURN(const std::vector<std::string> texts, translator->TranslateToText(sources));
    std::ofstream out(options.out);
    out << absl::StrJoin(texts, "\n") << "\n";
    if (!out.flush()) return InvalidArgument("--out: ", options.out, " could not be written");
  }
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  const double median = Median(seconds);
  PrintRow({{"beam", options.beam},
            {"batch", options.batch},
            {"precision", options.precision},
            {"threads", how.runtime.threads},
            {"sentences", sources.size()},
            {"sentences_per_second", static_cast<double>(sources.size()) / median},
            {"tokens_per_second", static_cast<double>(tokens) / median},
            {"peak_rss_mb", static_cast<double>(usage.ru_maxrss) / 1024}},
           options.json, /*width=*/22);
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("Measures how many sentences a run of weft train translate translates in a second.", "translate_bench");
  SetUp(&app);
  app.add_option("--model", options.model, "folder of the run")->required();
  app.add_option("--source", options.source, "file with a sentence on each line, perhaps compressed by gzip")
      ->required();
  app.add_option("--shortlist", options.shortlist, "file of weft lexicon, from which each sentence's words are taken");
  app.add_option("--beam", options.beam, "number of hypotheses; 1: greedy")->check(CLI::Range(1, 1024));
  app.add_option("--batch", options.batch, "maximum number of sentences at once")->check(CLI::Range(1, 4096));
  app.add_option("--precision", options.precision, "format of the weights")->check(CLI::IsMember(WeightFormatNames()));
  app.add_option("--threads", options.threads, "number of threads; 0: the number of cores")->check(CLI::Range(0, 1024));
  app.add_option("--repeats", options.repeats, "translations of the file of which the median is taken")
      ->check(CLI::Range(1, 1000));
  app.add_option("--out", options.out, "also write the translations to this file");
  app.add_flag("--json", options.json, "print one JSON object");
  return RunProgram(&app, argc, argv, [&] { return ExitCode("translate_bench", Measure(options)); });
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) { return weft::Main(argc, argv); }
