// Each entry is checked on its own, so that an error names the token or the line that is malformed.
#include "weft/text/bpe_files.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "weft/core/json.h"
#include "weft/core/status.h"
#include "weft/text/byte_alphabet.h"

namespace weft {

absl::StatusOr<VocabularyEntries> ReadVocabularyEntries(const nlohmann::json& object) {
  if (!object.is_object()) return InvalidArgument("not an object of tokens and their ids");
  VocabularyEntries tokens;
  for (const auto& [token, id] : object.items()) {
    const std::optional<int64_t> number = WholeNumber(id);
    if (!number)
      return InvalidArgument("the id of ", Quoted(token), " is ", id.dump(), ", not a whole number below 2^63");
    tokens.emplace_back(token, *number);
  }
  if (tokens.empty()) return InvalidArgument("it has no tokens");
  return tokens;
}

absl::StatusOr<std::string> TokenBytes(absl::string_view token) {
  absl::StatusOr<std::string> bytes = FromByteAlphabet(token);
  if (!bytes.ok()) return Annotate(bytes.status(), absl::StrCat("token ", Quoted(token)));
  return bytes;
}

absl::StatusOr<TokenPair> ReadMerge(absl::string_view left, absl::string_view right) {
  TokenPair merge;
  for (auto& [text, bytes] : {std::pair(left, &merge.first), std::pair(right, &merge.second)}) {
    if (text.empty()) return InvalidArgument("a token of the merge is empty");
    WEFT_ASSIGN_OR_RETURN(*bytes, FromByteAlphabet(text));
  }
  return merge;
}

absl::StatusOr<TokenPair> ReadMerge(absl::string_view left_space_right) {
  const std::vector<absl::string_view> tokens = absl::StrSplit(left_space_right, ' ');
  if (tokens.size() != 2) {
    return InvalidArgument(Quoted(left_space_right), " is not two tokens with a space between them");
  }
  return ReadMerge(tokens[0], tokens[1]);
}

absl::StatusOr<Vocabulary> ReadBpeVocabulary(absl::string_view json) {
  WEFT_ASSIGN_OR_RETURN(const nlohmann::json parsed, ParseLargeJsonObject(json));
  WEFT_ASSIGN_OR_RETURN(VocabularyEntries tokens, ReadVocabularyEntries(parsed));
  for (auto& [token, id] : tokens) {
    WEFT_ASSIGN_OR_RETURN(token, TokenBytes(token));
  }
  return Vocabulary::FromIds(std::move(tokens));
}

absl::StatusOr<std::vector<TokenPair>> ReadBpeMerges(absl::string_view text) {
  std::vector<TokenPair> merges;
  int64_t number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripSuffix(line, "\r");
    if (line.empty() || (number == 1 && absl::StartsWith(line, "#version"))) continue;
    const absl::StatusOr<TokenPair> merge = ReadMerge(line);
    if (!merge.ok()) return Annotate(merge.status(), absl::StrCat("line ", number));
    merges.push_back(*merge);
  }
  return merges;
}

BpeModel Gpt2Model(Vocabulary vocabulary, std::vector<TokenPair> merges) {
  absl::flat_hash_set<std::string> merged;
  for (const auto& [left, right] : merges) merged.insert(left + right);
  std::vector<AddedToken> special = UsualSpecialTokens(vocabulary);
  std::erase_if(special, [&](const AddedToken& token) { return merged.contains(token.text); });
  return {.vocabulary = std::move(vocabulary), .merges = std::move(merges), .special = std::move(special)};
}

}  // namespace weft
