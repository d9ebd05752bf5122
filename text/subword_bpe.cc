// Learning merges and splitting words start from the same symbols: a word's characters. The last character of a word
// has the suffix "</w>".
#include "weft/text/subword_bpe.h"

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "weft/core/status.h"
#include "weft/text/learn_bpe.h"
#include "weft/text/utf8.h"

namespace weft {
namespace {

constexpr absl::string_view kEndOfWord = "</w>", kVersion = "#version: 0.2", kContinued = "@@";

// Returns the characters of a nonempty UTF-8 word, the last with the end-of-word marker.
std::vector<std::string> Characters(absl::string_view word) {
  std::vector<std::string> characters;
  for (size_t i = 0; i < word.size(); i += characters.back().size()) {
    characters.emplace_back(word.substr(i, CharacterAt(word, i).bytes));
  }
  absl::StrAppend(&characters.back(), kEndOfWord);
  return characters;
}

}  // namespace

absl::StatusOr<std::vector<TokenPair>> LearnSubwordMerges(absl::string_view text, int64_t merges) {
  WEFT_RETURN_IF_ERROR(CheckUtf8(text));
  absl::flat_hash_map<absl::string_view, int64_t> counts;
  for (const absl::string_view word : absl::StrSplit(text, absl::ByAnyChar("\r\n "), absl::SkipEmpty())) ++counts[word];
  std::vector<CountedWord> words;
  for (const auto& [word, count] : counts) words.push_back({Characters(word), count});
  return LearnMerges(words, {.merges = merges});
}

std::string WriteSubwordMerges(const std::vector<TokenPair>& merges) {
  std::string file = absl::StrCat(kVersion, "\n");
  for (const auto& [left, right] : merges) absl::StrAppend(&file, left, " ", right, "\n");
  return file;
}

absl::StatusOr<std::vector<TokenPair>> ReadSubwordMerges(absl::string_view file) {
  std::vector<TokenPair> merges;
  int64_t number = 0;
  for (absl::string_view line : absl::StrSplit(file, '\n')) {
    ++number;
    line = absl::StripSuffix(line, "\r");
    const std::string location = absl::StrCat("line ", number);
    if (number == 1 && line != kVersion) {
      return InvalidArgument(location, ": ", Quoted(line), " is not \"", kVersion, "\"");
    }
    if (number == 1 || line.empty()) continue;
    WEFT_RETURN_IF_ERROR(Annotate(CheckUtf8(line), location));
    const std::vector<std::string> tokens = absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (tokens.size() != 2) {
      return InvalidArgument(location, ": ", Quoted(line), " is not two tokens with a space between them");
    }
    merges.emplace_back(tokens[0], tokens[1]);
  }
  return merges;
}

absl::StatusOr<SubwordBpe> SubwordBpe::Create(const std::vector<TokenPair>& merges) {
  SubwordBpe bpe;
  const auto id = [&bpe](const std::string& symbol) {
    if (const std::optional<int32_t> known = bpe.symbols_.Find(symbol)) return *known;
    WEFT_CHECK(bpe.symbols_.Add(symbol).ok());
    return bpe.symbols_.size() - 1;
  };
  int32_t rank = 0;
  for (const auto& [left, right] : merges) {
    if (!bpe.merges_.Add(id(left), id(right), {.rank = rank, .id = id(left + right)})) {
      return InvalidArgument("merge ", rank, ", ", Quoted(left), " ", Quoted(right), ": it occurs twice");
    }
    ++rank;
  }
  return bpe;
}

absl::StatusOr<std::vector<std::string>> SubwordBpe::Split(absl::string_view word) const {
  WEFT_RETURN_IF_ERROR(CheckUtf8(word));
  if (word.empty()) return std::vector<std::string>();
  const std::vector<std::string> characters = Characters(word);
  // A character that occurs in no merge gets a temporary id above the ids of all symbols.
  std::vector<int32_t> ids;
  for (size_t i = 0; i < characters.size(); ++i) {
    ids.push_back(symbols_.Find(characters[i]).value_or(symbols_.size() + static_cast<int32_t>(i)));
  }
  merges_.Apply(&ids);
  std::vector<std::string> pieces;
  for (const int32_t id : ids) {
    pieces.push_back(id < symbols_.size() ? symbols_.token(id) : characters[static_cast<size_t>(id - symbols_.size())]);
  }
  pieces.back() = std::string(absl::StripSuffix(pieces.back(), kEndOfWord));
  return pieces;
}

absl::StatusOr<std::string> SubwordBpe::Apply(absl::string_view line) const {
  std::string applied;
  WEFT_RETURN_IF_ERROR(CheckUtf8(line));
  for (const absl::string_view word : absl::StrSplit(line, absl::ByAnyChar("\r\n "), absl::SkipEmpty())) {
    WEFT_ASSIGN_OR_RETURN(const std::vector<std::string> pieces, Split(word));
    for (size_t i = 0; i < pieces.size(); ++i) {
      absl::StrAppend(&applied, applied.empty() ? "" : " ", pieces[i], i + 1 < pieces.size() ? kContinued : "");
    }
  }
  return applied;
}

}  // namespace weft
