#include "weft/text/tokenizers/vocabulary.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "weft/base/status.h"
#include "weft/text/utf8.h"

namespace weft {
namespace {

constexpr int32_t kFirstShifted = 0x100, kShifted = 68;  // the first substitute and their number

struct Alphabet {
  std::array<int32_t, 256> code_points;
  std::array<int16_t, kFirstShifted + kShifted> bytes;  // by code point; -1: stands for no byte
};

constexpr Alphabet MakeAlphabet() {
  Alphabet alphabet = {};
  alphabet.bytes.fill(-1);
  int32_t shifted = kFirstShifted;
  for (int32_t byte = 0; byte < 256; ++byte) {
    const bool printable = ('!' <= byte && byte <= '~') || (0xA1 <= byte && byte <= 0xFF && byte != 0xAD);
    const int32_t code_point = printable ? byte : shifted++;
    alphabet.code_points[static_cast<size_t>(byte)] = code_point;
    alphabet.bytes[static_cast<size_t>(code_point)] = static_cast<int16_t>(byte);
  }
  return alphabet;
}

constexpr Alphabet kAlphabet = MakeAlphabet();

}  // namespace

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

std::string ToByteAlphabet(absl::string_view bytes) {
  std::string text;
  for (const char byte : bytes) text += ToUtf8(kAlphabet.code_points[static_cast<uint8_t>(byte)]);
  return text;
}

absl::StatusOr<std::string> FromByteAlphabet(absl::string_view text) {
  std::string bytes;
  for (size_t i = 0; i < text.size();) {
    const Utf8Character c = CharacterAt(text, i);
    if (c.bytes == 0) return CheckUtf8(text);
    const size_t code_point = static_cast<size_t>(c.code_point);
    if (code_point >= kAlphabet.bytes.size() || kAlphabet.bytes[code_point] < 0) {
      return InvalidArgument(Describe(c.code_point), " stands for no byte");
    }
    bytes += static_cast<char>(kAlphabet.bytes[code_point]);
    i += c.bytes;
  }
  return bytes;
}

int ByteOf(absl::string_view token) {
  if (token.size() != 6 || !absl::StartsWith(token, "<0x") || token[5] != '>') return -1;
  uint8_t byte = 0;
  return std::from_chars(&token[3], &token[5], byte, 16).ptr == &token[5] ? byte : -1;
}

}  // namespace weft
