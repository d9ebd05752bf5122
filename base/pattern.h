// MatchesPattern compares names, such as those of weights and layers, with patterns of the user.
//
//   MatchesPattern("h.*.bias", "h.0.attn.c_attn.bias");   // true
#ifndef WEFT_BASE_PATTERN_H_
#define WEFT_BASE_PATTERN_H_

#include <fnmatch.h>

#include <string>

#include "absl/strings/string_view.h"

namespace weft {

// Reports whether the whole `name` matches `pattern`, in which * stands for any text, ? for one character, and [ab] for
// one of the characters in brackets.
inline bool MatchesPattern(const std::string& pattern, absl::string_view name) {
  return fnmatch(pattern.c_str(), std::string(name).c_str(), FNM_NOESCAPE) == 0;
}

}  // namespace weft

#endif  // WEFT_BASE_PATTERN_H_
