#include "weft/core/pattern.h"

#include <fnmatch.h>

namespace weft {

bool MatchesPattern(const std::string& pattern, absl::string_view name) {
  return fnmatch(pattern.c_str(), std::string(name).c_str(), FNM_NOESCAPE) == 0;
}

}  // namespace weft
