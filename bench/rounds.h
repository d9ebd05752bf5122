// Rounds tells which rounds of a measurement count: those that began and ended at the machine's full speed. Other
// programs and other guests of a host change its speed within minutes.
//
//   SpeedProbe probe(/*threads=*/2);
//   Rounds rounds(/*wanted=*/5, [&] { return probe.Measure(); });
//   while (rounds.GoOn()) seconds.push_back(Measure());
//   const std::vector<bool> counted = rounds.Counted();
//
// A probe measures the machine before the first round and after each one. Full speed is the highest figure that
// at least a fifth of the probes reach and, of three probes or more, at least two: a single probe may meet a short
// burst of a higher clock. A round counts if all figures before and after it are at least 95% of full speed. Rounds go
// on until enough count, or until four times as many have passed. Then those with the best probes are taken.
#ifndef WEFT_BENCH_ROUNDS_H_
#define WEFT_BENCH_ROUNDS_H_

#include <functional>
#include <string>
#include <vector>

#include "weft/bench/speed_probe.h"

namespace weft {

class Rounds {
 public:
  // `wanted`: the number of rounds that must count, at least 1. If `probe` is null, every round counts.
  explicit Rounds(int wanted, std::function<SpeedProbe::Speed()> probe = nullptr);

  // Ends a round, if one has begun. Returns whether another one is needed.
  bool GoOn();
  bool probes() const { return probe_ != nullptr; }
  // The following functions need an earlier call of GoOn. Returns for each round whether it counts. At least `wanted`
  // rounds do once GoOn has returned false.
  std::vector<bool> Counted() const;
  // Says how many rounds ran at full speed, and how slow the slowest probes were.
  std::string Report() const;

 private:
  std::vector<double> Shares() const;

  const int wanted_;
  const std::function<SpeedProbe::Speed()> probe_;
  std::vector<SpeedProbe::Speed> speeds_;  // one more than the rounds that have ended
};

}  // namespace weft

#endif  // WEFT_BENCH_ROUNDS_H_
