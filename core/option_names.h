// Other programs have other names for the options of Weft. The tables of option_table.h list those of Hugging Face,
// nanoGPT, llama.cpp, Marian, fairseq, OpenNMT and CTranslate2. An alias means the same as an option of Weft, and is
// accepted in its place. A foreign name has a related meaning, and leads to a suggestion only.
//
//   const std::vector<std::string> options = {"batch", "context", "micro-batches"};
//   FindOption("batch_size", options);                                // "batch"
//   Suggestion("block-sizes", options, NameStyle::kFlag);             // ", did you mean '--context'?"
//   Suggestion("accumulation_steps", options, NameStyle::kKey);       // ", did you mean 'micro_batches'?"
//
// Names are flags without "--", where '_' stands for '-'.
#ifndef WEFT_CORE_OPTION_NAMES_H_
#define WEFT_CORE_OPTION_NAMES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace weft {

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

#endif  // WEFT_CORE_OPTION_NAMES_H_
