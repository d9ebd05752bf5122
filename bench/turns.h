// TakeTurns measures several variants in turns. A variant is a function that does some work and returns its time.
//
// In each round every variant has one turn, in a random order. So other load of the machine affects all variants
// equally, and no variant always follows the same other one. A variant decides which work is untimed, and how often it
// repeats the timed work. Google Benchmark calls the variant once in each turn, and takes the time that it returns.
#ifndef WEFT_BENCH_TURNS_H_
#define WEFT_BENCH_TURNS_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "weft/bench/rounds.h"

namespace weft {

// The results of a turn.
struct Turn {
  double seconds = 0;                    // of an execution
  std::map<std::string, double> others;  // other figures by name; all turns of a variant have the same names
};

// Runs rounds, with one turn of each variant, until `rounds` wants no more. Returns turns[variant][round] of the rounds
// that count. An error of a variant ends the measurement and is returned.
absl::StatusOr<std::vector<std::vector<Turn>>> TakeTurns(
    const std::vector<std::function<absl::StatusOr<Turn>()>>& variants, Rounds* rounds);

// Returns the median of each figure.
Turn Median(const std::vector<Turn>& turns);

}  // namespace weft

#endif  // WEFT_BENCH_TURNS_H_
