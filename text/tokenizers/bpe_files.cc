// Each entry is checked on its own, so that an error names the token or the line that is malformed.
#include "weft/text/tokenizers/bpe_files.h"

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "weft/base/file.h"
#include "weft/base/json.h"
#include "weft/base/status.h"
#include "weft/text/utf8.h"

namespace weft {
namespace {

constexpr int32_t kFirstShifted = 0x100, kShifted = 68;  // the first substitute and their number

struct Alphabet {
  std::array<int32_t, 256> code_points;
  std::array<uint8_t, kFirstShifted + kShifted> bytes;
  std::array<bool, kFirstShifted + kShifted> known;
};

constexpr Alphabet MakeAlphabet() {
  Alphabet alphabet = {};
  int32_t shifted = kFirstShifted;
  for (int32_t byte = 0; byte < 256; ++byte) {
    const bool printable = ('!' <= byte && byte <= '~') || (0xA1 <= byte && byte <= 0xFF && byte != 0xAD);
    const int32_t code_point = printable ? byte : shifted++;
    alphabet.code_points[static_cast<size_t>(byte)] = code_point;
    alphabet.bytes[static_cast<size_t>(code_point)] = static_cast<uint8_t>(byte);
    alphabet.known[static_cast<size_t>(code_point)] = true;
  }
  return alphabet;
}

constexpr Alphabet kAlphabet = MakeAlphabet();

}  // namespace

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
    if (code_point >= kAlphabet.known.size() || !kAlphabet.known[code_point]) {
      return InvalidArgument(Describe(c.code_point), " stands for no byte");
    }
    bytes += static_cast<char>(kAlphabet.bytes[code_point]);
    i += c.bytes;
  }
  return bytes;
}

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

absl::StatusOr<Vocabulary> ReadVocabularyFile(const std::string& path, bool as_bytes) {
  WEFT_ASSIGN_OR_RETURN(const std::string file, ReadFile(path));
  WEFT_ASSIGN_OR_RETURN(const nlohmann::json json, Annotate(ParseLargeJsonObject(file), path));
  WEFT_ASSIGN_OR_RETURN(VocabularyEntries tokens, Annotate(ReadVocabularyEntries(json), path));
  for (size_t i = 0; as_bytes && i < tokens.size(); ++i) {
    WEFT_ASSIGN_OR_RETURN(tokens[i].first, Annotate(ReadToken(tokens[i].first), path));
  }
  return Annotate(Vocabulary::FromIds(std::move(tokens)), path);
}

absl::StatusOr<std::string> ReadToken(absl::string_view token) {
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

}  // namespace weft
