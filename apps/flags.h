// Flags are rows of a table of hyperparameters, on the command line. This header also has errors that become exit
// codes.
//
//   GivenFlags given;
//   AddFlags(app, table, &given);                          // before parsing
//   WEFT_RETURN_IF_ERROR(SetFromFlags(given, table));      // after it
//   WEFT_ASSIGN_OR_RETURN(const OpenedGpt gpt, UsageError(OpenGpt(flags.model)));   // exit code 2 if it can't be
//   opened
#ifndef WEFT_APPS_FLAGS_H_
#define WEFT_APPS_FLAGS_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "weft/core/hyperparameters.h"

namespace CLI {
class App;
}

namespace weft {

// Turns `status` into an error of the command line, with exit code 2. An error of the system, such as a full disk,
// stays as it is.
absl::Status UsageError(const absl::Status& status);
// Turns `status` into a failure of the command's work, with exit code 1.
absl::Status Failure(const absl::Status& status);
// The same for the error of a result.
template <class T>
absl::StatusOr<T> UsageError(absl::StatusOr<T> result) {
  return result.ok() ? std::move(result) : absl::StatusOr<T>(UsageError(result.status()));
}
template <class T>
absl::StatusOr<T> Failure(absl::StatusOr<T> result) {
  return result.ok() ? std::move(result) : absl::StatusOr<T>(Failure(result.status()));
}
int ExitCode(const absl::Status& status);

// Returns the words of the command line. `--flag=` becomes two words, of which the second is empty. Otherwise CLI11
// would read it as a flag without a value.
std::vector<std::string> Words(int argc, char** argv);

// The flags of the command line: their values as texts, by name.
using GivenFlags = std::map<std::string, std::string>;

// Adds a command to `parent`. `about` is the first line of its help.
CLI::App* AddCommand(CLI::App* parent, const std::string& name, const std::string& about);
// Adds a flag for each row. Parsing fills `given`, which must outlive `app`; the rows' values do not change.
void AddFlags(CLI::App* app, const Hyperparameters& table, GivenFlags* given);
// Sets the rows whose flags are in `given`. Errors begin with the option: "batch: 'many' is not a whole number".
absl::Status SetFromFlags(const GivenFlags& given, const Hyperparameters& table);
// Returns `status`. If its message begins with an option of the command `app`, puts "--" before it: "data: no file was
// given" becomes "--data: no file was given". Errors of the library name options; commands show options as flags.
absl::Status WithFlag(const absl::Status& status, const CLI::App& app);

// Returns an error for an unknown flag or argument: "unknown flag '--widht', did you mean '--width'?"
absl::Status CheckNoExtras(const CLI::App& app);

}  // namespace weft

#endif  // WEFT_APPS_FLAGS_H_
