// Other programs have other names for the options of Weft. The tables of option_table.cc list those of Hugging Face,
// nanoGPT, llama.cpp, Marian, fairseq, OpenNMT and CTranslate2. An alias means the same as an option of Weft, and is
// accepted in its place. A foreign name has a related meaning, and leads to a suggestion only.
//
//   const std::vector<std::string> options = {"batch", "context", "micro-batches"};
//   FindOption("batch_size", options);                                // "batch"
//   Suggestion("block-sizes", options, NameStyle::kFlag);             // ", did you mean '--context'?"
//   Suggestion("accumulation_steps", options, NameStyle::kKey);       // ", did you mean 'micro_batches'?"
//
// Names are flags without "--", where '_' stands for '-'. To add a name, add a word to the option's row in
// option_table.cc, or a new row.
#ifndef WEFT_OPTIONS_OPTION_NAMES_H_
#define WEFT_OPTIONS_OPTION_NAMES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace weft {

// Names that are accepted in place of the option's, because they mean the same.
struct OptionAliases {
  const char* option;   // "batch"
  const char* aliases;  // "batch-size mini-batch", names with spaces between them; a single letter is a short flag
};
// No alias is the name of an option.
absl::Span<const OptionAliases> AllOptionAliases();

// Names of other programs that mean something else than any option here, or whose values differ.
struct ForeignNames {
  const char* names;    // "workspace max-memory"
  const char* options;  // options with a related meaning; the first that a command has is suggested
  const char* hint;     // follows the suggestion, with options in angle brackets: "<batch> counts examples"; or ""
};
absl::Span<const ForeignNames> AllForeignNames();

// Returns the aliases of `option`, without short flags. Returns none if the table does not have the option.
std::vector<std::string> Aliases(absl::string_view option);
// Returns the letter of `option`'s short flag, or "" if it has none.
std::string ShortFlag(absl::string_view option);

// Returns `name` with each '_' replaced by '-'.
std::string WithHyphens(absl::string_view name);
// Returns the first option of `options` that has the name or the alias `name`, or "" if there is none.
std::string FindOption(absl::string_view name, absl::Span<const std::string> options);

enum class NameStyle : uint8_t { kFlag, kKey };  // "--learning-rate", "learning_rate"
// Returns ", did you mean '--batch'?" for the option of `options` that is nearest to `name`. Names of options, also
// those of other programs, are compared by their letters and by their words in any order; else an option is near whose
// words are a part of `name`. If the meanings differ, an explanation follows. Returns "" if no option is near.
std::string Suggestion(absl::string_view name, absl::Span<const std::string> options, NameStyle style);

}  // namespace weft

#endif  // WEFT_OPTIONS_OPTION_NAMES_H_
