// Functions that the programs of this folder share, for flags by CLI11 and for exit codes: 0 on success, 2 on a usage
// error and 1 on any other error.
#ifndef WEFT_BENCH_COMMAND_LINE_H_
#define WEFT_BENCH_COMMAND_LINE_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace weft {

// Makes --help show the defaults, and makes the last value of a repeated flag count.
void SetUp(CLI::App* app);

// These functions add flags that take a comma-separated list of values, all from `low` to `high` or in `known`.
// `values` contains the default. Errors name the value: "--nodes: '2x' is not a whole number from 1 to 100".
void AddWholeNumbers(CLI::App* app, const std::string& name, const std::string& description,
                     std::vector<int64_t>* values, int64_t low, int64_t high);
void AddNumbers(CLI::App* app, const std::string& name, const std::string& description, std::vector<double>* values,
                double low, double high);
void AddNames(CLI::App* app, const std::string& name, const std::string& description, std::vector<std::string>* values,
              const std::vector<std::string>& known);

// Parses the flags and calls `run`, which returns the exit code. Then checks that standard output could be written.
// Errors go to stderr and begin with the app's name.
int RunProgram(CLI::App* app, int argc, char** argv, const std::function<int()>& run);

}  // namespace weft

#endif  // WEFT_BENCH_COMMAND_LINE_H_
