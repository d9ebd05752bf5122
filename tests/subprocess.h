// RunCommand runs a program until it ends, with empty standard input, and captures its output. It searches PATH.
//
//   CommandResult result = RunCommand({"/bin/echo", "hello"});
//   result.exit_code == 0; result.out == "hello\n"
#ifndef WEFT_TESTS_SUBPROCESS_H_
#define WEFT_TESTS_SUBPROCESS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace weft {

struct CommandOptions {
  std::string folder;  // the working directory; if empty, that of this program
  // If `signal` is not 0, sends it as soon as stdout or stderr contains `signal_after`. Before the signal arrives, the
  // program can write at most about 8 kB more to that stream: its pipe is small and is not read in between.
  std::string signal_after;
  int signal = 0;
};

struct CommandResult {
  int exit_code = -1;  // 128 + N if signal N ended the program; 127 if it could not be started
  std::string out, err;
  uint64_t resident = 0;  // maximum resident memory of the program, in bytes
};

CommandResult RunCommand(const std::vector<std::string>& command, const CommandOptions& options = {});

}  // namespace weft

#endif  // WEFT_TESTS_SUBPROCESS_H_
