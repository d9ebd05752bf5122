// Parameter groups give some weights another learning rate or weight decay, or freeze them. Patterns on names choose
// the weights of each group.
//
//   WEFT_ASSIGN_OR_RETURN(std::vector<ParameterGroup> groups,
//                         ParseParameterGroups("*.bias:decay=0; wte.*:frozen; h.0.*:rate=0.5,decay=0.1"));
//   FindGroup(groups, "h.0.attn.c_attn.bias");  // the first group: decay 0
#ifndef WEFT_TRAIN_OPTIMIZE_PARAMETER_GROUPS_H_
#define WEFT_TRAIN_OPTIMIZE_PARAMETER_GROUPS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace weft {

struct ParameterGroup {
  std::string pattern;                      // of full names: * matches any text, ? one character, [ab] one of these
  double rate_scale = 1;                    // factor of the learning rate; at least 0
  std::optional<double> weight_decay = {};  // also of vectors; unset: the optimizer's
  bool frozen = false;                      // whether the weights stay as they are, without gradients and states
  bool adamw = false;                       // whether the optimizer Muon updates the weights by AdamW
};

// Returns the groups that `text` describes: PATTERN:SETTING,... for each, separated by ';'. A setting is rate=FACTOR,
// decay=NUMBER, frozen or adamw. An empty text has no groups. Returns InvalidArgument if a setting is unknown or
// invalid.
absl::StatusOr<std::vector<ParameterGroup>> ParseParameterGroups(absl::string_view text);
// Returns the first group whose pattern matches `name`, or null.
const ParameterGroup* FindGroup(absl::Span<const ParameterGroup> groups, absl::string_view name);
// Returns InvalidArgument if a group's setting is invalid, or if its pattern matches none of `names`.
absl::Status CheckGroups(absl::Span<const ParameterGroup> groups, const std::vector<std::string>& names);

}  // namespace weft

#endif  // WEFT_TRAIN_OPTIMIZE_PARAMETER_GROUPS_H_
