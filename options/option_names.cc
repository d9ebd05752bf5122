// A suggestion is the option with the name that is nearest to the name that was typed. The names of an option are its
// own, its aliases, and the foreign names that lead to it.
#include "weft/options/option_names.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "weft/base/status.h"

namespace weft {
namespace {

using Names = std::vector<std::string>;

constexpr size_t kMinMisspelt = 5;  // bytes: shorter foreign names must be exact
constexpr size_t kMaxName = 200;    // bytes: the time grows with the length of a name

Names Split(absl::string_view names) { return absl::StrSplit(names, ' ', absl::SkipEmpty()); }

// Returns the aliases of `option` with a size of 1, which are short flags, or those that are longer.
Names AliasesOf(absl::string_view option, bool is_short) {
  Names names;
  for (const OptionAliases& row : AllOptionAliases()) {
    if (row.option == option) names = Split(row.aliases);
  }
  std::erase_if(names, [&](const std::string& name) { return (name.size() == 1) != is_short; });
  return names;
}

std::string SortedWords(absl::string_view name) {
  Names words = absl::StrSplit(name, '-');
  absl::c_sort(words);
  return absl::StrJoin(words, "-");
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

// A name by which a user may mean an option.
struct Candidate {
  std::string name, option;               // the option is "" if there is none, but a hint
  const ForeignNames* foreign = nullptr;  // the row of the name, if another program has it
};

// Returns the names that may be meant by `typed`. If it is the name of an option that `options` lacks, these are only
// the options themselves and the foreign name `typed`.
std::vector<Candidate> FindCandidates(const std::string& typed, absl::Span<const std::string> options) {
  std::vector<Candidate> candidates;
  for (const std::string& option : options) candidates.push_back({option, option});
  const bool elsewhere = IsElsewhere(typed, options);
  for (const std::string& option : options) {
    if (elsewhere) break;
    for (std::string& alias : Aliases(option)) candidates.push_back({std::move(alias), option});
  }
  for (const ForeignNames& row : AllForeignNames()) {
    const std::string option = FirstOf(row, options);
    for (std::string& name : Split(row.names)) {
      const bool may_resemble = !option.empty() && !elsewhere && name.size() >= kMinMisspelt;
      const bool is_typed = name == typed && (!option.empty() || *row.hint != '\0');
      if (may_resemble || is_typed) candidates.push_back({std::move(name), option, &row});
    }
  }
  return candidates;
}

// Returns the candidate that is nearest to `typed` by its letters, or else by its words in any order, or else the one
// whose words end last in `typed`: in English, the last noun is the kind of thing. Returns null if none is near.
const Candidate* FindNearest(const std::string& typed, absl::Span<const Candidate> candidates) {
  const size_t limit = std::min(typed.size() - 1, std::max<size_t>(2, typed.size() / 5));
  Names names, sorted;
  for (const Candidate& each : candidates) {
    names.push_back(each.name);
    sorted.push_back(SortedWords(each.name));
  }
  size_t nearest = NearestWord(typed, names, limit);
  if (nearest == names.size()) nearest = NearestWord(SortedWords(typed), sorted, limit);
  if (nearest < names.size()) return &candidates[nearest];
  const std::string words = absl::StrCat("-", typed, "-");
  const Candidate* last = nullptr;
  size_t end = 0;
  for (const Candidate& each : candidates) {
    const size_t begin = words.rfind(absl::StrCat("-", each.name, "-"));
    if (begin == std::string::npos || begin + each.name.size() <= end) continue;
    last = &each;
    end = begin + each.name.size();
  }
  return last;
}

}  // namespace

std::vector<std::string> Aliases(absl::string_view option) { return AliasesOf(option, /*is_short=*/false); }

std::string ShortFlag(absl::string_view option) { return absl::StrJoin(AliasesOf(option, /*is_short=*/true), ""); }

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
  const std::vector<Candidate> candidates = FindCandidates(typed, options);
  const Candidate* const nearest = FindNearest(typed, candidates);
  if (nearest == nullptr) return "";
  const std::string option = nearest->option.empty() ? "" : Styled(nearest->option, style);
  const std::string hint = nearest->foreign == nullptr ? "" : Hint(*nearest->foreign, style);
  if (option.empty()) return absl::StrCat(": ", hint);
  return absl::StrCat(", did you mean '", option, "'?", hint.empty() ? "" : " ", hint);
}

}  // namespace weft
