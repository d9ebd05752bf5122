// These functions turn rows of a table of hyperparameters into flags of the command line, write the help of commands
// (apps/help.cc), and decide which errors are of usage.
// MakeCommand (apps/commands.h has an example) calls the first two for a command.
//
//   GivenFlags given;
//   AddFlags(app, table, &given);                          // before parsing
//   WEFT_RETURN_IF_ERROR(SetFromFlags(given, table));      // after parsing
//   WEFT_ASSIGN_OR_RETURN(const OpenedGpt gpt, UsageError(OpenGpt(flags.model, "")));   // exit code 2 if it is missing
#ifndef WEFT_APPS_FLAGS_H_
#define WEFT_APPS_FLAGS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weft/apps/commands.h"
#include "weft/base/status.h"
#include "weft/core/dtype.h"
#include "weft/options/hyperparameters.h"

namespace weft {

// Returns NotFound, AlreadyExists, FailedPrecondition and PermissionDenied as InvalidArgument, which gives exit code 2:
// the command line names a file that can't be used. Also returns ResourceExhausted as InvalidArgument if the message is
// about memory_budget, an option. Returns any other status unchanged, such as that of a full disk.
absl::Status UsageError(const absl::Status& status);
// If `status` would get exit code 2 from UsageError, returns it as DataLoss, which gives exit code 1. Returns any other
// status unchanged.
absl::Status Failure(const absl::Status& status);
// The same for the error of a result. A value stays unchanged.
template <class T>
absl::StatusOr<T> UsageError(absl::StatusOr<T> result) {
  return result.ok() ? std::move(result) : absl::StatusOr<T>(UsageError(result.status()));
}
template <class T>
absl::StatusOr<T> Failure(absl::StatusOr<T> result) {
  return result.ok() ? std::move(result) : absl::StatusOr<T>(Failure(result.status()));
}

// The flags that the command line has: the value of each as a text, by the flag's name without "--".
using GivenFlags = std::map<std::string, std::string>;

// The model, files and flags that most commands with a model take.
struct ModelFlags {
  std::string model;
  std::vector<std::string> files;
  GivenFlags given;
};

// Adds a command to `parent`. `name`: one word, or several, such as "train gpt", if the commands before the last word
// exist. `about` is the first line of its help.
CLI::App* AddCommand(CLI::App* parent, const std::string& name, const std::string& about);
// Adds words to the command `app` that are no flags, under `name`.
void AddWords(CLI::App* app, const std::string& name, const std::string& help, std::vector<std::string>* words,
              const std::string& type = "TEXT");
// Returns the row of the flag --model, which is required.
Hyperparameter ModelRow(std::string help, std::string* model, const char* group = "Model");
// The help of ModelRow in commands that generate with a GPT.
inline constexpr char kGptModel[] =
    "a run of weft train gpt, a folder of weft quantize, a Hugging Face folder of a decoder, a GGUF file, or a file of "
    "llama2.c";
// Returns the row of the flag --truncate, for texts that are `lines` in its help.
Hyperparameter TruncateRow(bool* truncate, absl::string_view lines = "lines");
// Return the rows of the flags --batch, --weights and --threads. --weights is the format in which memory holds the
// weights.
Hyperparameter BatchRow(std::string help, int64_t* batch, const char* group = "Run");
Hyperparameter WeightsRow(std::optional<DType>* weights);
Hyperparameter ThreadsRow(int64_t* threads);
// Returns the row of the flag --special-tokens, for Tokenizer::ReadSpecial.
Hyperparameter SpecialTokensRow(std::optional<bool>* special, const char* group = "");
// Returns a name for the values that a flag takes: its choices as in "f32|bf16", a range as in "0..1" or "N>=1", or a
// kind such as "BYTES" or "FILE". Returns "" for a switch.
std::string TypeName(const Hyperparameter& parameter);
// Returns the help of a flag: the row's help, with "Required: " before it or the default value after it.
std::string FlagHelp(const Hyperparameter& parameter);
// Adds a flag for each row, with the aliases of options/option_names.h that the command does not use otherwise. Parsing
// stores texts in `given`, which must outlive `app`; the rows' values do not change.
void AddFlags(CLI::App* app, const Hyperparameters& table, GivenFlags* given);
// Sets the rows whose flags are in `given`. A missing flag of a required row is an error, and so is "-" for a row of a
// model or a folder. Errors begin with the option: "batch: 'many' is not a whole number ...".
absl::Status SetFromFlags(const GivenFlags& given, const Hyperparameters& table);
// Returns InvalidArgument for the first of `flags` that is in `given`: "--" with the flag, and `why`, such as " needs
// --json".
absl::Status CheckNotGiven(const GivenFlags& given, absl::Span<const char* const> flags, absl::string_view why);
// Returns `path`, or the path of standard input if `path` is "-". For files that are read whole; text/data/lines.h
// reads lines of "-".
std::string InputPath(const std::string& path);
// Returns `status`. If its message begins with an option of the command `app`, or with an option's key, puts the flag
// in its place: "data: no file was given" becomes "--data: no file was given", and "top_p is 2" becomes "--top-p is 2".
// Errors of the library name options; commands show options as flags. If the user typed another name of the flag,
// `typed` has it by the flag's first name, and it comes first: "--train-file (--data): no file was given".
absl::Status WithFlag(const absl::Status& status, const CLI::App& app, const std::map<std::string, std::string>& typed);

inline constexpr char kFilesHelp[] = "files; - is standard input, which is also read if no file is named";

// The texts of a command.
struct CommandTexts {
  std::string about;  // the first lines of its help
  std::string summary;
  std::vector<Example> examples;
};
// Returns the command `name` of `parent`, such as "train gpt". It has a flag for each row of `table(flags)` and, if
// `files` names a member of `flags`, takes files of text after them. To run it sets the rows from the flags that are
// given, and returns `run(*flags)`.
template <class Flags, class Table, class Run>
Command MakeCommand(CLI::App* parent, const std::string& name, CommandTexts texts, std::shared_ptr<Flags> flags,
                    Table table, Run run, std::vector<std::string> std::type_identity_t<Flags>::*files = nullptr) {
  CLI::App* const app = AddCommand(parent, name, texts.about);
  AddFlags(app, table(flags.get()), &flags->given);
  if (files != nullptr) AddWords(app, "files", kFilesHelp, &(flags.get()->*files), "FILE");
  const auto start = [flags, table, run]() -> absl::Status {
    WEFT_RETURN_IF_ERROR(SetFromFlags(flags->given, table(flags.get())));
    return run(*flags);
  };
  return {app, start, std::move(texts.summary), std::move(texts.examples)};
}

// Returns the words that call `app`, such as "weft train gpt".
std::string FullName(const CLI::App& app);
// Returns the help of `app`, which is one of `commands` or a group of them. The help says what a command does, lists
// its flags by group with their types and defaults, and ends with examples. Lines have at most 80 columns.
std::string Help(const CLI::App& app, const std::vector<Command>& commands);

// Returns an error for an unknown flag or argument: "unknown flag '--widht', did you mean '--width'?".
absl::Status CheckNoExtras(const CLI::App& app);

}  // namespace weft

#endif  // WEFT_APPS_FLAGS_H_
