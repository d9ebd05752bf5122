#include "weft/text/lexicon/lexicon.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "weft/core/status.h"
#include "weft/text/lines.h"

namespace weft {
namespace {

constexpr char kNone[] = "NULL";
constexpr size_t kLinesAtOnce = 4096;

using IdsByText = absl::flat_hash_map<absl::string_view, int32_t>;

IdsByText ByText(const std::vector<std::string>& texts) {
  IdsByText ids;
  for (size_t i = 0; i < texts.size(); ++i) ids.try_emplace(texts[i], static_cast<int32_t>(i));
  return ids;
}

absl::StatusOr<int32_t> Find(const IdsByText& ids, absl::string_view text, const char* side) {
  const auto found = ids.find(text);
  if (found != ids.end()) return found->second;
  return InvalidArgument("the ", side, " vocabulary has no token '", text, "'");
}

absl::Status CheckSpelling(absl::string_view text, bool source) {
  const bool spaced = std::any_of(text.begin(), text.end(), [](char c) { return absl::ascii_isspace(c); });
  if (!text.empty() && !spaced && !(source && text == kNone)) return absl::OkStatus();
  return InvalidArgument("a lexicon cannot express the token '", text, "', because fields end at white space and ",
                         kNone, " stands for no token");
}

struct Line {
  int32_t source;  // -1: none
  LexiconEntry entry;
};

absl::StatusOr<Line> Parse(absl::string_view text, const IdsByText& sources, const IdsByText& targets) {
  const std::vector<absl::string_view> fields = absl::StrSplit(text, absl::ByAnyChar(" \t"), absl::SkipEmpty());
  Line line = {.source = -1, .entry = {}};
  float& probability = line.entry.probability;
  if (fields.size() != 3 || !absl::SimpleAtof(fields[2], &probability)) {
    return InvalidArgument("wanted TARGET SOURCE PROBABILITY");
  }
  if (!(probability >= 0 && probability <= 1)) return InvalidArgument("probability ", fields[2], ", wanted 0 .. 1");
  WEFT_ASSIGN_OR_RETURN(line.entry.target, Find(targets, fields[0], "target"));
  if (fields[1] == kNone) return line;
  WEFT_ASSIGN_OR_RETURN(line.source, Find(sources, fields[1], "source"));
  return line;
}

void SortByProbability(std::vector<LexiconEntry>* entries) {
  std::stable_sort(entries->begin(), entries->end(),
                   [](const LexiconEntry& a, const LexiconEntry& b) { return a.probability > b.probability; });
}

}  // namespace

std::vector<int32_t> Lexicon::Shortlist(absl::Span<const int32_t> source, int64_t best) const {
  std::vector<int32_t> ids;
  const auto add = [&](const std::vector<LexiconEntry>& entries) {
    const size_t count = std::min(entries.size(), static_cast<size_t>(best));
    for (size_t i = 0; i < count; ++i) ids.push_back(entries[i].target);
  };
  add(of_none);
  for (const int32_t token : source) {
    if (token >= 0 && static_cast<size_t>(token) < translations.size()) add(translations[static_cast<size_t>(token)]);
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

absl::StatusOr<Lexicon> ReadLexicon(const std::string& path, const LexiconVocabularies& vocabularies) {
  const IdsByText sources = ByText(vocabularies.source), targets = ByText(vocabularies.target);
  Lexicon lexicon;
  lexicon.translations.resize(vocabularies.source.size());
  LineReader reader({path});
  while (true) {
    WEFT_ASSIGN_OR_RETURN(const TextLines next, reader.Next(kLinesAtOnce));
    if (next.lines.empty()) break;
    for (size_t i = 0; i < next.lines.size(); ++i) {
      const absl::StatusOr<Line> line = Parse(next.lines[i], sources, targets);
      if (!line.ok()) return Annotate(line.status(), next.Location(i));
      (line->source < 0 ? lexicon.of_none : lexicon.translations[static_cast<size_t>(line->source)])
          .push_back(line->entry);
    }
  }
  SortByProbability(&lexicon.of_none);
  for (std::vector<LexiconEntry>& entries : lexicon.translations) SortByProbability(&entries);
  return lexicon;
}

absl::Status WriteLexicon(const std::string& path, const Lexicon& lexicon, const LexiconVocabularies& vocabularies,
                          IfThere if_there) {
  std::string text;
  const auto add = [&](absl::string_view source, const std::vector<LexiconEntry>& entries) -> absl::Status {
    for (const LexiconEntry& entry : entries) {
      const std::string& target = vocabularies.target[static_cast<size_t>(entry.target)];
      WEFT_RETURN_IF_ERROR(CheckSpelling(target, /*source=*/false));
      absl::StrAppendFormat(&text, "%s %s %.8g\n", target, source, entry.probability);
    }
    return absl::OkStatus();
  };
  WEFT_RETURN_IF_ERROR(add(kNone, lexicon.of_none));
  for (size_t i = 0; i < lexicon.translations.size(); ++i) {
    if (lexicon.translations[i].empty()) continue;
    WEFT_RETURN_IF_ERROR(CheckSpelling(vocabularies.source[i], /*source=*/true));
    WEFT_RETURN_IF_ERROR(add(vocabularies.source[i], lexicon.translations[i]));
  }
  return WriteFile(path, {text}, if_there);
}

}  // namespace weft
