// EncodeOrdinary merges each distinct word of a text once, and copies the ids when the word occurs again. Readers of
// files check each entry on its own, so that an error names the token or the line that is malformed.
#include "weft/text/tokenizers/byte_level_bpe.h"

#include <nlohmann/json.hpp>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "weft/base/file.h"
#include "weft/base/json.h"
#include "weft/base/status.h"
#include "weft/text/tokenizers/words.h"
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

ByteLevelBpe::ByteLevelBpe(BpeModel model) : model_(std::move(model)) {
  for (size_t byte = 0; byte < byte_ids_.size(); ++byte) {
    byte_ids_[byte] = model_.vocabulary.Find(std::string(1, static_cast<char>(byte))).value_or(-1);
  }
  for (const AddedToken& token : model_.special) {
    absl::StatusOr<std::string> bytes = FromByteAlphabet(token.text);
    if (bytes.ok()) Respell(token.id, *std::move(bytes));  // as the decoder of `tokenizers` does
  }
  SetAdded(model_.special);
  SetFormat(model_.single, model_.pair);
}

absl::StatusOr<std::unique_ptr<ByteLevelBpe>> ByteLevelBpe::Create(BpeModel model) {
  auto tokenizer = std::unique_ptr<ByteLevelBpe>(new ByteLevelBpe(std::move(model)));
  const Vocabulary& vocabulary = tokenizer->model_.vocabulary;
  int32_t rank = 0;
  for (const auto& [left, right] : tokenizer->model_.merges) {
    int32_t ids[3];
    int count = 0;
    for (const std::string& token : {left, right, left + right}) {
      const std::optional<int32_t> id = vocabulary.Find(token);
      if (!id.has_value()) {
        return InvalidArgument("merge ", rank, ", ", Quoted(left), " ", Quoted(right), ": ", Quoted(token),
                               " is not in the vocabulary");
      }
      ids[count++] = *id;
    }
    if (!tokenizer->merges_.Add(ids[0], ids[1], {.rank = rank, .id = ids[2]})) {
      return InvalidArgument("merge ", rank, ", ", Quoted(left), " ", Quoted(right), ": it occurs twice");
    }
    ++rank;
  }
  return tokenizer;
}

absl::StatusOr<std::vector<int32_t>> ByteLevelBpe::EncodeOrdinary(absl::string_view text) const {
  WEFT_RETURN_IF_ERROR(CheckUtf8(text));
  std::string prefixed;
  if (model_.prefix_space && !text.empty() && text[0] != ' ') {
    prefixed = absl::StrCat(" ", text);
    text = prefixed;
  }
  std::vector<int32_t> ids;
  struct Range {
    size_t begin, size;
  };
  absl::flat_hash_map<absl::string_view, Range> known;  // where `ids` has the ids of each earlier word
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = Gpt2WordEnd(text, begin);
    const absl::string_view word = text.substr(begin, end - begin);
    const auto [entry, added] = known.emplace(word, Range{ids.size(), 0});
    Range& range = entry->second;
    if (added) {
      if (const absl::Status status = AppendWord(word, &ids); !status.ok()) {
        return Annotate(status, absl::StrCat("at byte ", begin - (prefixed.empty() || begin == 0 ? 0 : 1)));
      }
      range.size = ids.size() - range.begin;
    } else {
      for (size_t i = 0; i < range.size; ++i) ids.push_back(ids[range.begin + i]);
    }
    begin = end;
  }
  return ids;
}

absl::Status ByteLevelBpe::AppendWord(absl::string_view word, std::vector<int32_t>* ids) const {
  if (model_.whole_words) {
    if (const std::optional<int32_t> id = model_.vocabulary.Find(word)) {
      ids->push_back(*id);
      return absl::OkStatus();
    }
  }
  std::vector<int32_t> pieces;
  bool after_unknown = false;
  for (const char byte : word) {
    const int32_t id = byte_ids_[static_cast<uint8_t>(byte)];
    const bool fused = model_.fuse_unknown && after_unknown;
    after_unknown = id < 0;
    if (id >= 0 || (model_.unknown.has_value() && !fused)) pieces.push_back(id >= 0 ? id : *model_.unknown);
    if (id < 0 && !model_.unknown.has_value()) {
      return InvalidArgument(absl::StrFormat("the word %s has the byte 0x%02X, which is not in the vocabulary",
                                             Quoted(word), static_cast<uint8_t>(byte)));
    }
  }
  merges_.Apply(&pieces);
  ids->insert(ids->end(), pieces.begin(), pieces.end());
  return absl::OkStatus();
}

std::string ByteLevelBpe::Join(absl::Span<const int32_t> ids) const {
  std::string text;
  for (const int32_t id : ids) text += Spelling(id, model_.vocabulary);
  return text;
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
