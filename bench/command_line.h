// What the programs of this folder have in common: flags by CLI11, and exit codes: 0 on success, 2 on a usage error, 1
// otherwise.
#ifndef WEFT_BENCH_COMMAND_LINE_H_
#define WEFT_BENCH_COMMAND_LINE_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace weft {

// An app whose flags are shown with their defaults; of one that is given twice the last counts.
void SetUp(CLI::App* app);

// Flags that take one value or several with commas between, all from `low` to `high` or among `known`. What `values`
// has before is the default. Errors name the value: "--nodes: '2x' is not a whole number from 1 to 100".
void AddWholeNumbers(CLI::App* app, const std::string& name, const std::string& description,
                     std::vector<int64_t>* values, int64_t low, int64_t high);
void AddNumbers(CLI::App* app, const std::string& name, const std::string& description, std::vector<double>* values,
                double low, double high);
void AddNames(CLI::App* app, const std::string& name, const std::string& description, std::vector<std::string>* values,
              const std::vector<std::string>& known);

// Parses the flags, runs `run`, whose exit code is the program's, and checks that its output could be written. Errors
// go to stderr, after the app's name.
int RunProgram(CLI::App* app, int argc, char** argv, const std::function<int()>& run);

}  // namespace weft

#endif  // WEFT_BENCH_COMMAND_LINE_H_
