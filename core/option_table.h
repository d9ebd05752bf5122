// The tables of names that other programs have for options: aliases and foreign names. core/option_names.h
// searches them.
//
//   for (const OptionAliases& row : AllOptionAliases()) Print(row.option, row.aliases);
//
// A new name is a word of a row, or a row. Names are flags without "--"; a space separates names.
#ifndef WEFT_CORE_OPTION_TABLE_H_
#define WEFT_CORE_OPTION_TABLE_H_

#include "absl/types/span.h"

namespace weft {

// Names that are accepted in place of the option's, because they mean the same.
struct OptionAliases {
  const char* option;   // "batch"
  const char* aliases;  // "batch-size mini-batch"; a single letter is a short flag, such as -m
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

}  // namespace weft

#endif  // WEFT_CORE_OPTION_TABLE_H_
