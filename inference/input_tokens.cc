#include "weft/inference/input_tokens.h"

#include <algorithm>

#include "weft/core/status.h"

namespace weft {

absl::Status CheckTokens(absl::string_view whose, absl::Span<const int32_t> tokens, int64_t context,
                         int64_t vocabulary) {
  if (tokens.empty()) return InvalidArgument(whose, " has no tokens");
  if (static_cast<int64_t>(tokens.size()) > context) {
    return InvalidArgument(whose, " has ", tokens.size(), " tokens, but the model's context is ", context);
  }
  for (const int32_t token : tokens) {
    if (token >= 0 && token < vocabulary) continue;
    return InvalidArgument(whose, " has the token ", token, ", but the vocabulary ends at ", vocabulary - 1);
  }
  return absl::OkStatus();
}

absl::Status FitContext(size_t special, int64_t context, bool truncate, std::vector<int32_t>* ids) {
  const size_t room = static_cast<size_t>(context) - special;
  if (ids->size() > room && !truncate) {
    return InvalidArgument("it has ", ids->size() + special, " tokens, but the model's context is ", context,
                           "; truncate would cut it");
  }
  ids->resize(std::min(ids->size(), room));
  return absl::OkStatus();
}

}  // namespace weft
