// The help of `weft` and of its commands, in lines of at most 80 columns: what a command does, its flags by group with
// their types and defaults, and examples.
//
//   Hyperparameter row = {"top-p", "sample among the likeliest tokens", &top_p, {.low = 0, .high = 1}};
//   TypeName(row) == "0..1"; FlagHelp(row) == "sample among the likeliest tokens (default: 0.9)"
//
//   Help(*app, commands);
#ifndef WEFT_APPS_HELP_H_
#define WEFT_APPS_HELP_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "weft/apps/commands.h"
#include "weft/options/hyperparameters.h"

namespace weft {

// Returns a name for the values that a flag takes: its choices as in "f32|bf16", a range as in "0..1" or "N>=1", or a
// kind such as "BYTES" or "FILE". Returns "" for a switch.
std::string TypeName(const Hyperparameter& parameter);
// Returns the help of a flag: the row's help, with "Required: " before it or the default value after it.
std::string FlagHelp(const Hyperparameter& parameter);

// Returns the words of `text` in lines of at most 80 columns. Each line after the first begins with `indent` spaces.
// `column`: number of columns that are taken on the first line.
std::string WrapWords(absl::string_view text, size_t column, size_t indent);

// Returns the words that call `app`, such as "weft train gpt".
std::string FullName(const CLI::App& app);

// Returns the help of `app`, one of `commands` or a group of them.
std::string Help(const CLI::App& app, const std::vector<Command>& commands);

}  // namespace weft

#endif  // WEFT_APPS_HELP_H_
