// Runs a program to its end, as a shell would.
//
//   CommandResult result = RunCommand({"/bin/echo", "hello"});
//   result.exit_code == 0; result.out == "hello\n"
#ifndef WEFT_TESTS_SUBPROCESS_H_
#define WEFT_TESTS_SUBPROCESS_H_

#include <string>
#include <vector>

namespace weft {

struct CommandOptions {
  std::string folder;  // to run in; empty: this program's
  // Sends `signal` as soon as stdout has `signal_after`. The program may write some 8 kB more to stdout before it gets
  // the signal, and no more than that: its pipe is small, and nobody reads it in between.
  std::string signal_after;
  int signal = 0;
};

struct CommandResult {
  int exit_code = -1;  // 128 + its number if a signal ended the program; 127 if it could not be started
  std::string out, err;
};

CommandResult RunCommand(const std::vector<std::string>& command, const CommandOptions& options = {});

}  // namespace weft

#endif  // WEFT_TESTS_SUBPROCESS_H_
