// Takes the times of several ways to do one thing, in turns, by Google Benchmark.
//
// In each round every way has one turn, and the rounds' orders are random: so whatever else the machine does meets all
// of them alike, and none always comes after the same other. What a turn runs untimed, and how often it runs what it
// times, is its own matter: Google Benchmark asks for one iteration, and takes the time that the turn says.
#ifndef WEFT_BENCH_TURNS_H_
#define WEFT_BENCH_TURNS_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace weft {

// What a turn found out.
struct Turn {
  double seconds = 0;                    // of a run
  std::map<std::string, double> others;  // by name; the same names in all turns of one way
};

// By way: its turns. The first error ends them.
absl::StatusOr<std::vector<std::vector<Turn>>> TakeTurns(const std::vector<std::function<absl::StatusOr<Turn>()>>& ways,
                                                         int rounds);

// Of each figure by itself.
Turn Median(const std::vector<Turn>& turns);

}  // namespace weft

#endif  // WEFT_BENCH_TURNS_H_
