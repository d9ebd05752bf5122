#include "weft/inference/fit_context.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace weft {

absl::Status FitContext(size_t special, int64_t context, bool truncate, std::vector<int32_t>* ids) {
  const size_t room = static_cast<size_t>(context) - special;
  if (ids->size() > room && !truncate) {
    return absl::InvalidArgumentError(absl::StrCat(
        "it has ", ids->size() + special, " tokens, but the model's context is ", context, "; truncate would cut it"));
  }
  ids->resize(std::min(ids->size(), room));
  return absl::OkStatus();
}

}  // namespace weft
