// What the programs of this folder have in common: flags by CLI11, and exit codes: 0 on success, 2 on a usage error, 1
// otherwise.
#ifndef WEFT_BENCH_COMMAND_LINE_H_
#define WEFT_BENCH_COMMAND_LINE_H_

#include <CLI/CLI.hpp>
#include <functional>

namespace weft {

// An app whose flags are shown with their defaults; of one that is given twice the last counts.
void SetUp(CLI::App* app);

// Parses the flags, runs `run`, whose exit code is the program's, and checks that its output could be written. Errors
// go to stderr, after the app's name.
int RunProgram(CLI::App* app, int argc, char** argv, const std::function<int()>& run);

}  // namespace weft

#endif  // WEFT_BENCH_COMMAND_LINE_H_
