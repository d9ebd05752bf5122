#include "weft/text/measures/ngrams.h"

#include <algorithm>
#include <iterator>

#include "weft/base/status.h"
#include "weft/text/utf8.h"

namespace weft {
namespace {

// Reports whether Python's str.split splits at `c`.
bool IsSeparator(int32_t c) { return IsSpace(c) || (0x1C <= c && c <= 0x1F); }

constexpr int32_t kCapitalSigma = 0x3A3;

// Reports whether letter `i` ends a word of several letters, by Unicode's rule Final_Sigma: a cased letter is before it
// and none after it, not counting characters that IsCaseIgnorable.
bool EndsWord(const std::vector<int32_t>& characters, size_t i) {
  const auto is_cased_at = [](auto begin, auto end) {
    const auto found = std::find_if_not(begin, end, [](int32_t c) { return c >= 0 && IsCaseIgnorable(c); });
    return found != end && *found >= 0 && IsCased(*found);
  };
  const auto letter = characters.begin() + static_cast<std::ptrdiff_t>(i);
  return is_cased_at(std::make_reverse_iterator(letter), characters.rend()) &&
         !is_cased_at(letter + 1, characters.end());
}

}  // namespace

std::vector<absl::string_view> SplitWords(absl::string_view text) {
  std::vector<absl::string_view> words;
  size_t word = 0, at = 0;  // where the present word and the present character begin
  const auto finish = [&](size_t end) {
    if (end > word) words.push_back(text.substr(word, end - word));
  };
  ForEachCharacter(text, [&](int32_t c, absl::string_view character) {
    const size_t begin = std::exchange(at, at + character.size());
    if (!IsSeparator(c)) return;
    finish(begin);
    word = at;
  });
  finish(text.size());
  return words;
}

std::string Lowercase(absl::string_view text) {
  std::vector<int32_t> characters;  // negative: minus one, minus the byte that is not UTF-8
  ForEachCharacter(text, [&](int32_t c, absl::string_view character) {
    characters.push_back(c >= 0 ? c : -1 - static_cast<uint8_t>(character[0]));
  });
  std::string lower;
  for (size_t i = 0; i < characters.size(); ++i) {
    const int32_t c = characters[i];
    if (c < 0) {
      lower += static_cast<char>(-1 - c);
    } else if (c == kCapitalSigma && EndsWord(characters, i)) {
      lower += "ς";
    } else {
      AppendLowercase(c, &lower);
    }
  }
  return lower;
}

absl::string_view UnitLine::NGram(size_t first, size_t n) const {
  if (first + n > units.size()) return {};
  const size_t begin = units[first].first;
  return absl::string_view(text).substr(begin, units[first + n - 1].second - begin);
}

UnitLine JoinWords(absl::Span<const absl::string_view> words) {
  UnitLine line;
  for (const absl::string_view word : words) {
    if (!line.text.empty()) line.text += ' ';
    line.units.emplace_back(line.text.size(), line.text.size() + word.size());
    line.text.append(word.data(), word.size());
  }
  return line;
}

UnitLine JoinCharacters(absl::string_view text) {
  UnitLine line;
  ForEachCharacter(text, [&](int32_t c, absl::string_view character) {
    if (IsSeparator(c)) return;
    line.units.emplace_back(line.text.size(), line.text.size() + character.size());
    line.text.append(character.data(), character.size());
  });
  return line;
}

NGramCounts CountNGrams(const UnitLine& line, size_t n) {
  NGramCounts counts;
  for (size_t first = 0; first + n <= line.units.size(); ++first) ++counts[line.NGram(first, n)];
  return counts;
}

int64_t Total(const NGramCounts& counts) {
  int64_t total = 0;
  for (const auto& [ngram, count] : counts) total += count;
  return total;
}

int64_t Matches(const NGramCounts& counts, const NGramCounts& wanted) {
  int64_t matches = 0;
  for (const auto& [ngram, count] : counts) {
    const auto found = wanted.find(ngram);
    if (found != wanted.end()) matches += std::min(count, found->second);
  }
  return matches;
}

std::vector<int64_t> Sum(const LineCounts& counts) {
  std::vector<int64_t> sums(counts.empty() ? 0 : counts[0].size(), 0);
  for (const std::vector<int64_t>& line : counts) {
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += line[i];
  }
  return sums;
}

absl::Status CheckReferences(size_t translations, References references) {
  if (references.empty()) return InvalidArgument("there are no references");
  for (const std::vector<std::string>& lines : references) {
    if (lines.size() == translations) continue;
    return InvalidArgument("there are ", translations, " translations, but ", lines.size(), " references");
  }
  return absl::OkStatus();
}

}  // namespace weft
