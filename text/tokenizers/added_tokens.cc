// A text is scanned once. The first byte at a position selects the few tokens that are compared there.
#include "weft/text/tokenizers/added_tokens.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "weft/text/unicode.h"
#include "weft/text/utf8.h"

namespace weft {
namespace {

size_t BeforeSpace(absl::string_view text, size_t end) {
  for (size_t begin; end > 0 && IsSpace(CharacterAt(text, begin = CharacterBegin(text, end - 1)).code_point);)
    end = begin;
  return end;
}

size_t BehindSpace(absl::string_view text, size_t begin) {
  while (begin < text.size() && IsSpace(CharacterAt(text, begin).code_point)) begin += CharacterAt(text, begin).bytes;
  return begin;
}

bool IsSingleWord(absl::string_view text, size_t begin, size_t end) {
  return (begin == 0 || !IsWordCharacter(CharacterAt(text, CharacterBegin(text, begin - 1)).code_point)) &&
         (end == text.size() || !IsWordCharacter(CharacterAt(text, end).code_point));
}

}  // namespace

AddedTokenFinder::AddedTokenFinder(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  std::stable_sort(tokens_.begin(), tokens_.end(),
                   [](const AddedToken& a, const AddedToken& b) { return a.text.size() > b.text.size(); });
  for (uint32_t i = 0; i < tokens_.size(); ++i) {
    if (tokens_[i].text.empty()) continue;
    by_first_byte_[static_cast<uint8_t>(tokens_[i].text[0])].push_back(i);
    longest_ = std::max(longest_, tokens_[i].text.size());
    all_special_ = all_special_ && tokens_[i].special;
  }
}

const AddedToken* AddedTokenFinder::FindAt(absl::string_view text, size_t at) const {
  for (const uint32_t i : by_first_byte_[static_cast<uint8_t>(text[at])]) {
    if (absl::StartsWith(text.substr(at), tokens_[i].text)) return &tokens_[i];
  }
  return nullptr;
}

std::vector<AddedTokenFinder::Piece> AddedTokenFinder::Split(absl::string_view text, bool special) const {
  std::vector<Piece> pieces;
  size_t done = 0;
  for (size_t at = all_special_ && !special ? text.size() : 0; at < text.size();) {
    const AddedToken* const token = FindAt(text, at);
    if (token == nullptr) {
      ++at;
      continue;
    }
    size_t begin = at, end = at + token->text.size();
    at = end;
    if ((token->special && !special) || (token->single_word && !IsSingleWord(text, begin, end))) continue;
    if (token->strip_before) begin = std::max(done, BeforeSpace(text, begin));
    if (token->strip_after) end = BehindSpace(text, end);
    if (done < begin) pieces.push_back({text.substr(done, begin - done), nullptr});
    pieces.push_back({token->text, token});
    done = end;
  }
  if (done < text.size()) pieces.push_back({text.substr(done), nullptr});
  return pieces;
}

bool AddedTokenFinder::Touches(absl::string_view text, size_t at) const {
  const size_t begin = BeforeSpace(text, at), end = BehindSpace(text, at);
  for (size_t i = begin - std::min(begin, longest_); i <= end && i < text.size(); ++i) {
    const AddedToken* const token = FindAt(text, i);
    if (token != nullptr && i + token->text.size() >= begin) return true;
  }
  return false;
}

}  // namespace weft
