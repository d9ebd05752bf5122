// ReadCommandLine prepares the words of a command line for CLI11, which knows a flag by fixed names only. Flags may
// have '_' in place of '-', and a switch X is turned off with --no-X.
//
//   const CommandLine line = ReadCommandLine(argc, argv, app);  // weft train gpt --batch_size=8 --no-bias
//   line.words;  // "train", "gpt", "--batch=8", "--bias=false"
//   line.typed;  // {"batch": "--batch_size", "bias": "--no-bias"}
#ifndef WEFT_APPS_COMMAND_LINE_H_
#define WEFT_APPS_COMMAND_LINE_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace CLI {
class App;
}

namespace weft {

struct CommandLine {
  // The words after the program's name, where each known long flag has its first name.
  std::vector<std::string> words;
  // The names that the user typed for flags, by the flag's first name without "--".
  std::map<std::string, std::string> typed;
  // An error if two names of a flag have different values, or if a long flag has a single '-'. Otherwise OK.
  absl::Status status;
};

// Reads a command line of the commands that `app` has. The flags must have been added. Unknown flags stay as they are.
CommandLine ReadCommandLine(int argc, char** argv, const CLI::App& app);

}  // namespace weft

#endif  // WEFT_APPS_COMMAND_LINE_H_
