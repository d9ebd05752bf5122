#include "weft/text/tokenizers/vocabulary.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "weft/base/status.h"
#include "weft/text/utf8.h"

namespace weft {

std::string Quoted(absl::string_view token) {
  return absl::StrCat("'", CheckUtf8(token).ok() ? absl::Utf8SafeCEscape(token) : absl::CHexEscape(token), "'");
}

absl::StatusOr<Vocabulary> Vocabulary::Create(std::vector<std::string> tokens) {
  Vocabulary vocabulary;
  for (std::string& token : tokens) WEFT_RETURN_IF_ERROR(vocabulary.Add(std::move(token)));
  return vocabulary;
}

absl::StatusOr<Vocabulary> Vocabulary::FromIds(VocabularyEntries tokens, const VocabularyEntries& unfound) {
  const size_t found = tokens.size();
  tokens.insert(tokens.end(), unfound.begin(), unfound.end());
  std::vector<const std::pair<std::string, int64_t>*> by_id;
  for (const auto& entry : tokens) {
    const auto& [token, id] = entry;
    if (id < 0 || id >= 2 * static_cast<int64_t>(tokens.size())) {
      return InvalidArgument("token ", Quoted(token), " has id ", id, ", but there are ", tokens.size(), " tokens");
    }
    by_id.resize(std::max(by_id.size(), static_cast<size_t>(id) + 1));
    const auto*& known = by_id[static_cast<size_t>(id)];
    if (known != nullptr) {
      return InvalidArgument("tokens ", Quoted(known->first), " and ", Quoted(token), " both have id ", id);
    }
    known = &entry;
  }
  Vocabulary vocabulary;
  for (const auto* token : by_id) {
    const bool is_found = token != nullptr && token < tokens.data() + found;
    if (is_found) WEFT_RETURN_IF_ERROR(vocabulary.Add(token->first));
    if (!is_found) vocabulary.tokens_.push_back(token == nullptr ? "" : token->first);
  }
  return vocabulary;
}

void Vocabulary::AddOrMove(std::string token) {
  const auto [entry, added] = ids_.emplace(token, size());
  if (!added) tokens_[static_cast<size_t>(std::exchange(entry->second, size()))].clear();
  tokens_.push_back(std::move(token));
}

std::optional<int32_t> Vocabulary::Find(absl::string_view token) const {
  const auto found = ids_.find(token);
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

absl::Status Vocabulary::Add(std::string token) {
  const auto [entry, added] = ids_.emplace(token, size());
  if (!added) {
    return InvalidArgument("token ", Quoted(token), " occurs twice, with ids ", entry->second, " and ", size());
  }
  tokens_.push_back(std::move(token));
  return absl::OkStatus();
}

}  // namespace weft
