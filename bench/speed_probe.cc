#include "weft/bench/speed_probe.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "weft/lab/machine/peak.h"

namespace weft {
namespace {

constexpr size_t kBytes = size_t{256} << 20;  // 256 MiB: more than the caches of most CPUs hold

// Calls `work` again and again for `seconds`. Returns the amount per second of all calls together.
double MeanRate(double seconds, const std::function<TimedWork()>& work) {
  TimedWork sum;
  const Clock::time_point start = Clock::now();
  do {
    const TimedWork done = work();
    sum = {sum.amount + done.amount, sum.seconds + done.seconds};
  } while (SecondsSince(start) < seconds);
  return sum.amount / sum.seconds;
}

}  // namespace

SpeedProbe::SpeedProbe(int threads) : team_(threads), array_(arena_.Allocate(kBytes)) {
  if (array_ != nullptr) std::fill_n(array_, kBytes, std::byte{1});
}

SpeedProbe::Speed SpeedProbe::Measure() {
  // A core that was idle needs about 0.1 s of work until its clock and the memory's run at full speed.
  constexpr double kWarmUp = 0.15, kPieceSeconds = 0.01;
  constexpr int kPieces = 5;
  constexpr int64_t kFewRounds = 50'000;  // so that a call takes about a millisecond
  const auto multiply = [&] { return RunRounds(&team_, F32Rounds(), kFewRounds); };
  const auto read = [&] { return ReadArray(&team_, array_, kBytes); };
  const auto measure = [&](std::vector<double>* flops, std::vector<double>* reads) {
    flops->push_back(MeanRate(kPieceSeconds, multiply));
    if (array_ != nullptr) reads->push_back(MeanRate(kPieceSeconds, read));
  };
  std::vector<double> flops, reads;
  for (const Clock::time_point start = Clock::now(); SecondsSince(start) < kWarmUp;) measure(&flops, &reads);
  flops.clear(), reads.clear();
  for (int i = 0; i < kPieces; ++i) measure(&flops, &reads);
  return {.flops = Median(std::move(flops)), .read = reads.empty() ? 0 : Median(std::move(reads))};
}

}  // namespace weft
