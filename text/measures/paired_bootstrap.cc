// A resample's score needs only the sums of its lines' counts, so no text is read again.
#include "weft/text/measures/paired_bootstrap.h"

#include <cmath>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "weft/base/status.h"
#include "weft/core/random.h"

namespace weft {
namespace {

BootstrapScore Summarise(double score, std::vector<double> resampled) {
  absl::c_sort(resampled);
  const size_t outside = resampled.size() / 40;
  return {.score = score,
          .mean = absl::c_accumulate(resampled, 0.0) / static_cast<double>(resampled.size()),
          .low = resampled[outside],
          .high = resampled[resampled.size() - outside - 1]};
}

}  // namespace

BootstrapComparison PairedBootstrap(const LineCounts& system, const LineCounts& baseline, CorpusScore score,
                                    const BootstrapOptions& options) {
  const auto draw = [&](size_t resample, size_t i) {
    const RandomStream random = {
        .seed = options.seed, .stream = kResampleStream, .step = static_cast<uint32_t>(resample)};
    return static_cast<size_t>(random.Below(system.size(), i));
  };
  return PairedBootstrap(system, baseline, score, options.resamples, draw);
}

BootstrapComparison PairedBootstrap(const LineCounts& system, const LineCounts& baseline, CorpusScore score,
                                    int64_t resamples, absl::FunctionRef<size_t(size_t resample, size_t i)> draw) {
  WEFT_CHECK(!system.empty() && system.size() == baseline.size() && resamples > 0);
  std::vector<double> systems, baselines, differences;
  std::vector<int64_t> system_sums, baseline_sums;
  for (size_t resample = 0; resample < static_cast<size_t>(resamples); ++resample) {
    system_sums.assign(system[0].size(), 0);
    baseline_sums.assign(baseline[0].size(), 0);
    for (size_t i = 0; i < system.size(); ++i) {
      const size_t line = draw(resample, i);
      for (size_t j = 0; j < system_sums.size(); ++j) system_sums[j] += system[line][j];
      for (size_t j = 0; j < baseline_sums.size(); ++j) baseline_sums[j] += baseline[line][j];
    }
    systems.push_back(score(system_sums));
    baselines.push_back(score(baseline_sums));
    differences.push_back(systems.back() - baselines.back());
  }
  const double system_score = score(Sum(system)), baseline_score = score(Sum(baseline));
  const double difference = system_score - baseline_score;
  double mean = 0;  // of the absolute differences
  for (const double each : differences) mean += std::abs(each) / static_cast<double>(resamples);
  const auto larger =
      absl::c_count_if(differences, [&](double each) { return std::abs(each) - mean > std::abs(difference); });
  const bool same = absl::c_all_of(differences, [](double each) { return each == 0; });
  return {.system = Summarise(system_score, std::move(systems)),
          .baseline = Summarise(baseline_score, std::move(baselines)),
          .difference = Summarise(difference, std::move(differences)),
          .p_value = same ? 1 : static_cast<double>(larger + 1) / static_cast<double>(resamples + 1)};
}

}  // namespace weft
