// OptionValues is a table of values that differ from the defaults, for each option of the models. A test trains with
// each of them, and docs/options.md lists them.
//
//   for (const OptionValue& each : OptionValues()) {
//     if (each.IsFor("gpt")) Train("gpt", each.flag, each.value, each.with);
//   }
#ifndef WEFT_TESTS_OPTIONS_OPTION_VALUES_H_
#define WEFT_TESTS_OPTIONS_OPTION_VALUES_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace weft {

struct OptionValue {
  std::string flag, value;
  // Other options that `value` needs to have an effect: "distance-bias=buckets context=24".
  std::string with = "";
  // The trainings that take this value: "gpt bert"; "": all that have the option.
  std::string trainings = "";
  // Whether training gives the same weights as without `value`, for example because it is another name of the default.
  bool same_weights = false;

  bool IsFor(absl::string_view training) const;
};

const std::vector<OptionValue>& OptionValues();

}  // namespace weft

#endif  // WEFT_TESTS_OPTIONS_OPTION_VALUES_H_
