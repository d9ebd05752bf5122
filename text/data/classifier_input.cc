#include "weft/text/data/classifier_input.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "weft/base/status.h"

namespace weft {

absl::StatusOr<ModelInput> TextInput(absl::string_view text, const Tokenizer& tokenizer, const EncodeLimits& limits) {
  WEFT_ASSIGN_OR_RETURN(std::vector<int32_t> ids, tokenizer.Encode(text));
  WEFT_ASSIGN_OR_RETURN(const size_t room, TokensThatFit(ids.size(), tokenizer.Wrap({}).ids.size(), limits));
  ids.resize(room);
  return tokenizer.Wrap(ids);
}

absl::StatusOr<ModelInput> PairInput(absl::string_view first, absl::string_view second, const Tokenizer& tokenizer,
                                     const EncodeLimits& limits) {
  WEFT_ASSIGN_OR_RETURN(const ModelInput special, tokenizer.WrapPair({}, {}));
  std::vector<int32_t> ids[2];
  WEFT_ASSIGN_OR_RETURN(ids[0], tokenizer.Encode(first));
  WEFT_ASSIGN_OR_RETURN(ids[1], tokenizer.Encode(second));
  for (size_t i = 0; i < 2; ++i) {
    if (ids[i].empty()) return InvalidArgument("the ", i == 0 ? "first" : "second", " text of the pair is empty");
  }
  WEFT_ASSIGN_OR_RETURN(const size_t room, TokensThatFit(ids[0].size() + ids[1].size(), special.ids.size(), limits));
  if (room < 2) return InvalidArgument("a context of ", limits.context, " has no room for a pair of texts");
  // The shorter text keeps at most half of the room, and the longer one gets the rest.
  const bool swapped = ids[0].size() > ids[1].size();
  std::vector<int32_t>& shorter = ids[swapped ? 1 : 0];
  std::vector<int32_t>& longer = ids[swapped ? 0 : 1];
  shorter.resize(std::min(shorter.size(), std::max(room / 2, room - std::min(room, longer.size()))));
  longer.resize(std::min(longer.size(), room - shorter.size()));
  return tokenizer.WrapPair(ids[0], ids[1]);
}

absl::StatusOr<WordsInput> InputOfWords(absl::Span<const std::string> words, const Tokenizer& tokenizer,
                                        const EncodeLimits& limits) {
  constexpr int32_t kText = -1;  // no token has this id
  const std::vector<int32_t> wrapped = tokenizer.Wrap({kText}).ids;
  const auto before = std::find(wrapped.begin(), wrapped.end(), kText) - wrapped.begin();
  WordsInput result;
  std::vector<int32_t> ids;
  for (const std::string& word : words) {
    const std::string text = result.first.empty() ? word : absl::StrCat(" ", word);
    WEFT_ASSIGN_OR_RETURN(const std::vector<int32_t> tokens, tokenizer.Encode(text));
    result.first.push_back(tokens.empty() ? -1 : static_cast<int32_t>(before + static_cast<int64_t>(ids.size())));
    ids.insert(ids.end(), tokens.begin(), tokens.end());
  }
  WEFT_ASSIGN_OR_RETURN(const size_t room, TokensThatFit(ids.size(), wrapped.size() - 1, limits));
  ids.resize(room);
  for (int32_t& first : result.first) {
    if (first >= before + static_cast<int64_t>(room)) first = -1;
  }
  result.input = tokenizer.Wrap(ids);
  return result;
}

}  // namespace weft
