// Flags: the command line's side of the table of hyperparameters, and usage errors.
#ifndef WEFT_APPS_FLAGS_H_
#define WEFT_APPS_FLAGS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "weft/core/hyperparameters.h"

namespace CLI {
class App;
}

namespace weft {

// `status` as an error of the command line: exit code 2. What the system refused (a full disk) is none, and stays.
absl::Status UsageError(const absl::Status& status);
// `status` as a failure at work: exit code 1.
absl::Status Failure(const absl::Status& status);
int ExitCode(const absl::Status& status);

// The command line, with the value of `--flag=` as a word of its own: CLI11 takes it for a flag without one.
std::vector<std::string> Words(int argc, char** argv);

// The flags that were given, by name, as texts.
using GivenFlags = std::map<std::string, std::string>;

// A subcommand of `parent`, of this name, and what its help says that it is for.
CLI::App* AddCommand(CLI::App* parent, const std::string& name, const std::string& about);
// Adds a flag for each row; parsing fills `given`, which outlives `app`, and leaves the rows' values alone.
void AddFlags(CLI::App* app, const Hyperparameters& table, GivenFlags* given);
// Sets the rows whose flags were given. Errors begin with the flag: "--batch: 'many' is not a whole number".
absl::Status SetFromFlags(const GivenFlags& given, const Hyperparameters& table);
// Returns `status`, with "--" before its message if that begins with an option of the table: "data: no file was given"
// becomes "--data: no file was given". Library errors name options, and a command shows them as flags.
absl::Status WithFlag(const absl::Status& status, const Hyperparameters& table);

// Unknown flags and stray arguments: "unknown flag '--widht', did you mean '--width'?"
absl::Status CheckNoExtras(const CLI::App& app);

}  // namespace weft

#endif  // WEFT_APPS_FLAGS_H_
