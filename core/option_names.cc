// A suggestion is the option with the largest similarity, from 0 to 1, to the name that was typed. An option is as
// similar as the most similar of its names: its own, its aliases, and the foreign names that lead to it.
#include "weft/core/option_names.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "weft/core/edit_distance.h"
#include "weft/core/option_table.h"

namespace weft {
namespace {

using Names = std::vector<std::string>;

constexpr double kMinSimilarity = 0.55;  // below, a suggestion would rather confuse
constexpr double kOfPrefix = 0.85;       // similarity of a name and its beginning
constexpr double kOfOtherName = 0.97;    // factor for aliases and foreign names: an option's own name comes first
constexpr size_t kMaxName = 200;         // bytes: the table of distances grows with the square

Names Split(absl::string_view names) { return absl::StrSplit(names, ' ', absl::SkipEmpty()); }

const OptionAliases* FindAliases(absl::string_view option) {
  for (const OptionAliases& row : AllOptionAliases()) {
    if (row.option == option) return &row;
  }
  return nullptr;
}

// A word of a name, in the form that words of the same meaning share. Words such as "num" tell little.
struct Word {
  std::string text;
  double weight;
};

std::string Singular(absl::string_view word) {
  const bool plural = word.size() > 3 && absl::EndsWith(word, "s") && !absl::EndsWith(word, "ss");
  return std::string(plural ? word.substr(0, word.size() - 1) : word);
}

std::vector<Word> WordsOf(absl::string_view name) {
  static const Names kWeak = Split(
      "n num number of the max maximum total per use enable model transformer train training size file dir path name");
  std::vector<Word> words;
  for (const absl::string_view part : absl::StrSplit(name, '-', absl::SkipEmpty())) {
    std::string word = Singular(part);
    for (const char* row : AllSynonyms()) {
      const Names synonyms = Split(row);
      if (absl::c_linear_search(synonyms, word)) word = synonyms.front();
    }
    const double weight = absl::c_linear_search(kWeak, word) ? 0.2 : 1;
    if (word == "lr") {
      words.insert(words.end(), {{"learning", weight}, {"rate", weight}});
    } else {
      words.push_back({std::move(word), weight});
    }
  }
  return words;
}

double SimilarityOfLetters(absl::string_view a, absl::string_view b) {
  const auto longer = static_cast<double>(std::max(a.size(), b.size()));
  return longer == 0 ? 0 : 1 - static_cast<double>(EditDistance(a, b)) / longer;
}

// Returns the common weight of both lists of words as a fraction of their total weight. The order does not matter.
double SimilarityOfWords(const std::vector<Word>& a, std::vector<Word> b) {
  constexpr double kSameWord = 0.65;  // minimum similarity of two words of which one is misspelt
  double total = 0, common = 0;
  for (const Word& word : a) total += word.weight;
  for (const Word& word : b) total += word.weight;
  for (const Word& word : a) {
    double best = kSameWord;
    auto at = b.end();
    for (auto it = b.begin(); it != b.end(); ++it) {
      const double similarity = SimilarityOfLetters(word.text, it->text);
      if (similarity < best || (at != b.end() && similarity == best)) continue;
      best = similarity;
      at = it;
    }
    if (at == b.end()) continue;
    common += best * (word.weight + at->weight);
    b.erase(at);
  }
  return total == 0 ? 0 : common / total;
}

std::string SortedWords(absl::string_view name) {
  Names words = absl::StrSplit(name, '-');
  absl::c_sort(words);
  return absl::StrJoin(words, "-");
}

double Similarity(const std::string& typed, const std::string& name) {
  if (typed == name) return 1;
  if (name.size() > kMaxName) return 0;
  double similarity =
      std::max(SimilarityOfLetters(typed, name), SimilarityOfLetters(SortedWords(typed), SortedWords(name)));
  similarity = std::max(similarity, SimilarityOfWords(WordsOf(typed), WordsOf(name)));
  if (typed.size() >= 3 && absl::StartsWith(name, typed)) similarity = std::max(similarity, kOfPrefix);
  return similarity;
}

// Reports whether `name` is an alias of an option that `options` lacks. Then it says nothing about aliases of others.
bool IsElsewhere(absl::string_view name, absl::Span<const std::string> options) {
  for (const OptionAliases& row : AllOptionAliases()) {
    if (absl::c_linear_search(options, row.option)) continue;
    if (name == row.option || absl::c_linear_search(Split(row.aliases), name)) return true;
  }
  return false;
}

// Returns the first option of `row` that is in `options`, or "".
std::string FirstOf(const ForeignNames& row, absl::Span<const std::string> options) {
  for (const std::string& option : Split(row.options)) {
    if (absl::c_linear_search(options, option)) return option;
  }
  return "";
}

std::string Styled(absl::string_view option, NameStyle style) {
  return style == NameStyle::kFlag ? absl::StrCat("--", option) : absl::StrReplaceAll(option, {{"-", "_"}});
}

// Returns a sentence with the hint of `row`, or "" if it has none.
std::string Hint(const ForeignNames& row, NameStyle style) {
  absl::string_view rest = row.hint;
  std::string hint;
  for (size_t at = rest.find('<'); at != rest.npos; at = rest.find('<')) {
    const size_t end = rest.find('>');
    absl::StrAppend(&hint, rest.substr(0, at), Styled(rest.substr(at + 1, end - at - 1), style));
    rest.remove_prefix(end + 1);
  }
  return absl::StrCat(hint, rest);
}

struct Nearest {
  std::string option;
  double similarity = 0;
  const ForeignNames* foreign = nullptr;  // the row of the foreign name, if it is one

  void Offer(const std::string& candidate, double value, const ForeignNames* row) {
    if (value <= similarity) return;
    *this = {candidate, value, row};
  }
};

}  // namespace

std::vector<std::string> Aliases(absl::string_view option) {
  const OptionAliases* const row = FindAliases(option);
  if (row == nullptr) return {};
  Names names = Split(row->aliases);
  std::erase_if(names, [](const std::string& name) { return name.size() == 1; });
  return names;
}

std::string ShortFlag(absl::string_view option) {
  const OptionAliases* const row = FindAliases(option);
  if (row == nullptr) return "";
  for (const std::string& name : Split(row->aliases)) {
    if (name.size() == 1) return name;
  }
  return "";
}

std::string WithHyphens(absl::string_view name) { return absl::StrReplaceAll(name, {{"_", "-"}}); }

std::string FindOption(absl::string_view name, absl::Span<const std::string> options) {
  const std::string hyphened = WithHyphens(name);
  if (absl::c_linear_search(options, hyphened)) return hyphened;
  for (const std::string& option : options) {
    if (absl::c_linear_search(Aliases(option), hyphened)) return option;
  }
  return "";
}

std::string Suggestion(absl::string_view name, absl::Span<const std::string> options, NameStyle style) {
  const std::string typed = absl::AsciiStrToLower(WithHyphens(name));
  if (typed.empty() || typed.size() > kMaxName) return "";
  const bool elsewhere = IsElsewhere(typed, options);
  Nearest nearest;
  for (const std::string& option : options) {
    nearest.Offer(option, Similarity(typed, option), nullptr);
    if (elsewhere) continue;
    for (const std::string& alias : Aliases(option)) {
      nearest.Offer(option, kOfOtherName * Similarity(typed, alias), nullptr);
    }
  }
  for (const ForeignNames& row : AllForeignNames()) {
    const std::string option = FirstOf(row, options);
    for (const std::string& foreign : Split(row.names)) {
      if (option.empty() ? *row.hint == '\0' || foreign != typed : elsewhere && foreign != typed) continue;
      nearest.Offer(option, foreign == typed ? 1 : kOfOtherName * Similarity(typed, foreign), &row);
    }
  }
  if (nearest.similarity < kMinSimilarity) return "";
  std::string text =
      nearest.option.empty() ? "" : absl::StrCat(", did you mean '", Styled(nearest.option, style), "'?");
  const std::string hint = nearest.foreign == nullptr ? "" : Hint(*nearest.foreign, style);
  if (!hint.empty()) absl::StrAppend(&text, text.empty() ? ": " : " ", hint);
  return text;
}

}  // namespace weft
