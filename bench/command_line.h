// These functions add flags to the programs of this folder, by CLI11, and run the programs. Exit codes are 0 on
// success, 2 on a usage error and 1 on any other error.
#ifndef WEFT_BENCH_COMMAND_LINE_H_
#define WEFT_BENCH_COMMAND_LINE_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "weft/bench/rounds.h"

namespace CLI {
class App;
}

namespace weft {

// Makes --help show the defaults. If a flag is repeated, its last value counts.
void SetUp(CLI::App* app);

// Each of these functions adds a flag that takes a comma-separated list: numbers from `low` to `high`, or names in
// `known`. `values` holds the default until the flag is parsed. Errors name the value: "--nodes: '2x' is not a whole
// number from 1 to 100".
void AddWholeNumbers(CLI::App* app, const std::string& name, const std::string& description,
                     std::vector<int64_t>* values, int64_t low, int64_t high);
void AddNumbers(CLI::App* app, const std::string& name, const std::string& description, std::vector<double>* values,
                double low, double high);
void AddNames(CLI::App* app, const std::string& name, const std::string& description, std::vector<std::string>* values,
              const std::vector<std::string>& known);

// Adds the flag --probe, which sets `wanted`.
void AddProbe(CLI::App* app, bool* wanted);
// Returns the rounds of a measurement, which ends after `count` valid rounds (bench/rounds.h). If `probe` is
// true, a SpeedProbe of `threads` threads measures the machine between rounds and decides which rounds are valid.
// Otherwise all are.
Rounds MakeRounds(int count, bool probe, int threads);

// Parses the flags, calls `run` and returns its exit code. If standard output could not be written, returns 1. Errors
// go to stderr and begin with the app's name.
int RunProgram(CLI::App* app, int argc, char** argv, const std::function<int()>& run);

}  // namespace weft

#endif  // WEFT_BENCH_COMMAND_LINE_H_
