// Patterns on names choose the weights of parameter groups.
#include <cmath>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "weft/base/decimal.h"
#include "weft/base/pattern.h"
#include "weft/base/status.h"
#include "weft/train/optimize/optimizer.h"

namespace weft {
namespace {

absl::Status CheckNumber(const ParameterGroup& group, absl::string_view setting, double value) {
  if (std::isfinite(value) && value >= 0) return absl::OkStatus();
  return InvalidArgument("groups: '", group.pattern, "' has ", setting, " ", value, ", wanted >= 0, finite");
}

absl::Status CheckSettings(const ParameterGroup& group) {
  if (group.pattern.empty()) return InvalidArgument("groups: a pattern is empty");
  WEFT_RETURN_IF_ERROR(CheckNumber(group, "rate", group.rate_scale));
  return CheckNumber(group, "decay", group.weight_decay.value_or(0));
}

absl::Status Set(absl::string_view text, ParameterGroup* group) {
  if (text == "frozen" || text == "adamw") {
    (text == "frozen" ? group->frozen : group->adamw) = true;
    return absl::OkStatus();
  }
  const size_t equals = text.find('=');
  const absl::string_view name = text.substr(0, equals);
  if (equals == text.npos || (name != "rate" && name != "decay")) {
    return InvalidArgument("groups: '", group->pattern, "' has '", text,
                           "', wanted rate=FACTOR, decay=NUMBER, frozen or adamw");
  }
  double value = 0;
  if (!ParseDecimal(text.substr(equals + 1), &value)) {
    return InvalidArgument("groups: '", group->pattern, "' has '", text, "', which is not a number");
  }
  if (name == "rate") {
    group->rate_scale = value;
  } else {
    group->weight_decay = value;
  }
  return CheckNumber(*group, name, value);
}

}  // namespace

absl::StatusOr<std::vector<ParameterGroup>> ParseParameterGroups(absl::string_view text) {
  std::vector<ParameterGroup> groups;
  for (const absl::string_view part : absl::StrSplit(text, ';', absl::SkipWhitespace())) {
    const size_t colon = part.find(':');
    ParameterGroup group = {.pattern = std::string(absl::StripAsciiWhitespace(part.substr(0, colon)))};
    if (colon == part.npos) {
      return InvalidArgument("groups: '", group.pattern, "' has no settings, as in '", group.pattern, ":frozen'");
    }
    for (const absl::string_view setting : absl::StrSplit(part.substr(colon + 1), ',')) {
      WEFT_RETURN_IF_ERROR(Set(absl::StripAsciiWhitespace(setting), &group));
    }
    WEFT_RETURN_IF_ERROR(CheckSettings(group));
    groups.push_back(std::move(group));
  }
  return groups;
}

const ParameterGroup* FindGroup(absl::Span<const ParameterGroup> groups, absl::string_view name) {
  const auto found = absl::c_find_if(groups, [&](const auto& group) { return MatchesPattern(group.pattern, name); });
  return found != groups.end() ? &*found : nullptr;
}

bool IsFrozen(absl::Span<const ParameterGroup> groups, absl::string_view name) {
  const ParameterGroup* const group = FindGroup(groups, name);
  return group != nullptr && group->frozen;
}

absl::Status CheckGroups(absl::Span<const ParameterGroup> groups, const std::vector<std::string>& names) {
  for (const ParameterGroup& group : groups) {
    WEFT_RETURN_IF_ERROR(CheckSettings(group));
    if (absl::c_any_of(names, [&](const auto& name) { return MatchesPattern(group.pattern, name); })) continue;
    return InvalidArgument("groups: '", group.pattern, "' matches none of the ", names.size(), " weights",
                           names.empty() ? "" : absl::StrCat(", such as '", names.front(), "'"));
  }
  const bool all_frozen =
      !groups.empty() && absl::c_all_of(names, [&](const auto& name) { return IsFrozen(groups, name); });
  if (!all_frozen) return absl::OkStatus();
  return InvalidArgument("groups: all ", names.size(), " weights are frozen, so that there is nothing to train");
}

}  // namespace weft
