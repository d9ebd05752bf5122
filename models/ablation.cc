// A table has the name of each part, so that texts, errors and the struct list the same parts.
#include "weft/models/ablation.h"

#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "weft/base/status.h"

namespace weft {
namespace {

constexpr std::pair<const char*, bool Ablation::*> kParts[] = {{"residual", &Ablation::residual},
                                                               {"norm", &Ablation::norm},
                                                               {"feed-forward", &Ablation::feed_forward},
                                                               {"value", &Ablation::value},
                                                               {"query-is-key", &Ablation::query_is_key}};

absl::Status Set(absl::string_view word, Ablation* ablation) {
  std::vector<std::string> names;
  for (const auto& [name, part] : kParts) {
    if (word == name) return ablation->*part = true, absl::OkStatus();
    names.push_back(name);
  }
  return InvalidArgument("'", word, "' is not one of ", absl::StrJoin(names, ", "), DidYouMean(word, names),
                         "; wanted none, or a list of them separated by commas");
}

}  // namespace

std::string ToText(const Ablation& ablation) {
  std::vector<absl::string_view> names;
  for (const auto& [name, part] : kParts) {
    if (ablation.*part) names.push_back(name);
  }
  return names.empty() ? "none" : absl::StrJoin(names, ",");
}

absl::StatusOr<Ablation> AblationFromText(absl::string_view text) {
  Ablation ablation;
  if (text == "none") return ablation;
  const std::string hyphens = absl::StrReplaceAll(text, {{"_", "-"}});
  for (const absl::string_view word : absl::StrSplit(hyphens, ',')) {
    WEFT_RETURN_IF_ERROR(Set(absl::StripAsciiWhitespace(word), &ablation));
  }
  return ablation;
}

Var Norm(absl::string_view name, Var x, const NormOptions& options, const Ablation& ablation) {
  return ablation.norm ? x : Norm(name, x, options);
}

}  // namespace weft
