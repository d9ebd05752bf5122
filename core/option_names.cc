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
constexpr double kOfAlias = 0.97;        // factor for aliases: an option's own name comes first
constexpr double kOfForeignName = 0.9;   // factor for names that only resemble a foreign name
constexpr double kOfLastWord = 0.03;  // added if the last words agree: in English, the last noun is the kind of thing
constexpr size_t kMinMisspelt = 5;    // bytes: shorter words of a name, and shorter foreign names, must be exact
constexpr size_t kMaxName = 200;      // bytes: the table of distances grows with the square

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
  static constexpr absl::string_view kWeak[] = {
      "n",     "num",         "number", "of",       "the",  "max",  "maximum", "total", "per",  "use", "enable",
      "model", "transformer", "train",  "training", "size", "file", "dir",     "path",  "name", "type"};
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

// Returns the fraction of letters that are equal. Returns 0 if more than 2 edits, and more than a quarter of the
// letters, differ: long names with a common part are still different names.
double SimilarityOfLetters(absl::string_view a, absl::string_view b) {
  const size_t longer = std::max(a.size(), b.size()), distance = EditDistance(a, b);
  if (distance > std::max<size_t>(2, longer / 4) || longer == 0) return 0;
  return 1 - static_cast<double>(distance) / static_cast<double>(longer);
}

// Returns the common weight of both lists of words as a fraction of their total weight, in any order. Among equal
// fractions, lists with the same last word are more similar.
double SimilarityOfWords(const std::vector<Word>& a, std::vector<Word> b) {
  constexpr double kSameWord = 0.65;  // minimum similarity of two words of which one is misspelt
  if (a.empty() || b.empty()) return 0;
  const double last = a.back().text == b.back().text ? kOfLastWord : 0;
  double total = 0, common = 0;
  for (const Word& word : a) total += word.weight;
  for (const Word& word : b) total += word.weight;
  for (const Word& word : a) {
    double best = kSameWord;
    auto at = b.end();
    for (auto it = b.begin(); it != b.end(); ++it) {
      const bool too_short = std::min(word.text.size(), it->text.size()) < kMinMisspelt;
      if (too_short && word.text != it->text) continue;
      const double similarity = SimilarityOfLetters(word.text, it->text);
      if (similarity < best || (at != b.end() && similarity == best)) continue;
      best = similarity;
      at = it;
    }
    if (at == b.end()) continue;
    common += best * (word.weight + at->weight);
    b.erase(at);
  }
  return std::min(1.0, common / total + last);
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
      nearest.Offer(option, kOfAlias * Similarity(typed, alias), nullptr);
    }
  }
  for (const ForeignNames& row : AllForeignNames()) {
    const std::string option = FirstOf(row, options);
    for (const std::string& foreign : Split(row.names)) {
      if (option.empty() ? *row.hint == '\0' || foreign != typed : elsewhere && foreign != typed) continue;
      const bool letters = foreign.size() >= kMinMisspelt;
      const double similarity =
          letters ? Similarity(typed, foreign) : SimilarityOfWords(WordsOf(typed), WordsOf(foreign));
      nearest.Offer(option, foreign == typed ? 1 : kOfForeignName * similarity, &row);
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
