#include "weft/bench/turns.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "benchmark/benchmark.h"
#include "weft/base/status.h"
#include "weft/lab/machine/measure.h"

namespace weft {
namespace {

// Collects the results of all turns; a turn is one run of a variant. A benchmark's name is the index of its variant.
class Collector : public benchmark::BenchmarkReporter {
 public:
  explicit Collector(size_t variants) : turns_(variants) {}

  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      size_t variant = 0;
      WEFT_CHECK(absl::SimpleAtoi(run.run_name.function_name, &variant) && variant < turns_.size());
      turns_[variant].push_back({.seconds = run.real_accumulated_time / static_cast<double>(run.iterations),
                                 .others = {run.counters.begin(), run.counters.end()}});
    }
  }

  // Returns the turns of the rounds that count.
  std::vector<std::vector<Turn>> Take(const std::vector<bool>& counted) const {
    std::vector<std::vector<Turn>> taken(turns_.size());
    for (size_t variant = 0; variant < turns_.size(); ++variant) {
      for (size_t round = 0; round < counted.size(); ++round) {
        if (counted[round]) taken[variant].push_back(turns_[variant][round]);
      }
    }
    return taken;
  }

 private:
  std::vector<std::vector<Turn>> turns_;
};

void InitializeOnce() {
  static const bool done = [] {
    char program[] = "", random[] = "--benchmark_enable_random_interleaving=true";
    char* arguments[] = {program, random, nullptr};
    int count = 2;
    benchmark::Initialize(&count, arguments);
    return true;
  }();
  WEFT_CHECK(done);
}

}  // namespace

absl::StatusOr<std::vector<std::vector<Turn>>> TakeTurns(
    const std::vector<std::function<absl::StatusOr<Turn>()>>& variants, Rounds* rounds) {
  InitializeOnce();
  absl::Status status;
  for (size_t variant = 0; variant < variants.size(); ++variant) {
    const auto run = [&status, &variants, variant](benchmark::State& state) {
      for (auto _ : state) {
        const absl::StatusOr<Turn> turn = status.ok() ? variants[variant]() : status;
        if (!turn.ok()) {
          status = turn.status();
          return state.SkipWithError("");
        }
        state.SetIterationTime(turn->seconds);
        for (const auto& [name, value] : turn->others) state.counters[name] = value;
      }
    };
    benchmark::RegisterBenchmark(std::to_string(variant).c_str(), run)->Iterations(1)->UseManualTime();
  }
  Collector collector(variants.size());
  // Runs one round after the other. If all repetitions were shuffled at once, all turns of a variant could come first.
  while (status.ok() && rounds->GoOn()) benchmark::RunSpecifiedBenchmarks(&collector);
  benchmark::ClearRegisteredBenchmarks();
  WEFT_RETURN_IF_ERROR(status);
  return collector.Take(rounds->Counted());
}

Turn Median(const std::vector<Turn>& turns) {
  std::vector<double> seconds;
  std::map<std::string, std::vector<double>> others;
  for (const Turn& turn : turns) {
    seconds.push_back(turn.seconds);
    for (const auto& [name, value] : turn.others) others[name].push_back(value);
  }
  Turn median = {.seconds = Median(std::move(seconds))};
  for (auto& [name, values] : others) median.others[name] = Median(std::move(values));
  return median;
}

}  // namespace weft
