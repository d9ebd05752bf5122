#include "weft/text/lexicon/lexicon.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "weft/base/status.h"
#include "weft/text/data/lines.h"

namespace weft {
namespace {

constexpr char kNull[] = "NULL";
constexpr size_t kLinesAtOnce = 4096;

using IdsByText = absl::flat_hash_map<absl::string_view, int32_t>;

IdsByText ByText(const std::vector<std::string>& texts) {
  IdsByText ids;
  for (size_t i = 0; i < texts.size(); ++i) ids.try_emplace(texts[i], static_cast<int32_t>(i));
  return ids;
}

std::optional<int32_t> Find(const IdsByText& ids, absl::string_view text) {
  const auto found = ids.find(text);
  return found != ids.end() ? std::optional<int32_t>(found->second) : std::nullopt;
}

bool CanBeWritten(absl::string_view text) {
  return !text.empty() && text != kNull && std::none_of(text.begin(), text.end(), absl::ascii_isspace);
}

struct Line {
  absl::string_view target, source;
  float probability = 0;
};

absl::StatusOr<Line> Parse(absl::string_view text) {
  const std::vector<absl::string_view> fields = absl::StrSplit(text, absl::ByAnyChar(" \t"), absl::SkipEmpty());
  Line line;
  if (fields.size() != 3 || !absl::SimpleAtof(fields[2], &line.probability)) {
    return InvalidArgument("wanted TARGET SOURCE PROBABILITY");
  }
  if (!(line.probability >= 0 && line.probability <= 1)) {
    return InvalidArgument("probability ", fields[2], ", wanted 0 .. 1");
  }
  line.target = fields[0];
  line.source = fields[1];
  return line;
}

// Sorts by falling probability, and equal ones by id. Of several translations with the same token, keeps the most
// likely one. Keeps the first `max_translations`.
void SortAndCut(std::vector<Translation>* translations, int64_t max_translations) {
  const auto by_token = [](const Translation& a, const Translation& b) {
    return a.target != b.target ? a.target < b.target : a.probability > b.probability;
  };
  const auto same_token = [](const Translation& a, const Translation& b) { return a.target == b.target; };
  std::sort(translations->begin(), translations->end(), by_token);
  translations->erase(std::unique(translations->begin(), translations->end(), same_token), translations->end());
  std::sort(translations->begin(), translations->end(), [](const Translation& a, const Translation& b) {
    return a.probability != b.probability ? a.probability > b.probability : a.target < b.target;
  });
  translations->resize(std::min(translations->size(), static_cast<size_t>(max_translations)));
}

// p(target | source) of two tokens that occur in one pair of sentences.
struct TranslationProbability {
  int32_t source, target;  // source 0 is the NULL word; token i is i + 1
  double probability = 1, count = 0;
};

// Each iteration of expectation maximisation distributes one count of each target token over the source tokens of its
// sentence, in proportion to p(target | source). The counts of a source token, divided by their sum, are its new
// probabilities.
class Model1 {
 public:
  explicit Model1(int64_t source_vocabulary) : sums_(static_cast<size_t>(source_vocabulary) + 1) {}

  void Iterate(absl::Span<const SentencePair> pairs) {
    std::fill(sums_.begin(), sums_.end(), 0.0);
    for (TranslationProbability& entry : entries_) entry.count = 0;
    std::vector<size_t> indices;  // in entries_, of a target token and each source token
    for (const SentencePair& pair : pairs) {
      for (const int32_t target : pair.target) {
        indices.assign(1, IndexOf(0, target));
        for (const int32_t source : pair.source) indices.push_back(IndexOf(source + 1, target));
        double sum = 0;
        for (const size_t i : indices) sum += entries_[i].probability;
        for (const size_t i : indices) {
          const double count = entries_[i].probability / sum;
          entries_[i].count += count;
          SumOf(entries_[i]) += count;
        }
      }
    }
    for (TranslationProbability& entry : entries_) entry.probability = entry.count / SumOf(entry);
  }

  Lexicon MostLikely(int64_t max_translations) const {
    Lexicon lexicon;
    lexicon.translations.resize(sums_.size() - 1);
    for (const TranslationProbability& entry : entries_) {
      std::vector<Translation>& translations =
          entry.source == 0 ? lexicon.null_translations : lexicon.translations[static_cast<size_t>(entry.source) - 1];
      translations.push_back({entry.target, static_cast<float>(entry.probability)});
    }
    SortAndCut(&lexicon.null_translations, max_translations);
    for (std::vector<Translation>& translations : lexicon.translations) SortAndCut(&translations, max_translations);
    return lexicon;
  }

 private:
  size_t IndexOf(int32_t source, int32_t target) {
    WEFT_CHECK(source >= 0 && static_cast<size_t>(source) < sums_.size());
    const uint64_t key = static_cast<uint64_t>(source) << 32 | static_cast<uint32_t>(target);
    const auto [at, is_new] = by_tokens_.try_emplace(key, entries_.size());
    if (is_new) entries_.push_back({source, target});
    return at->second;
  }
  double& SumOf(const TranslationProbability& entry) { return sums_[static_cast<size_t>(entry.source)]; }

  absl::flat_hash_map<uint64_t, size_t> by_tokens_;  // indices in entries_
  std::vector<TranslationProbability> entries_;
  std::vector<double> sums_;  // by source token: the sum of its counts
};

}  // namespace

Lexicon LearnLexicon(absl::Span<const SentencePair> pairs, const LearnLexiconOptions& options) {
  Model1 model(options.source_vocabulary);
  for (int64_t i = 0; i < options.iterations; ++i) model.Iterate(pairs);
  return model.MostLikely(options.max_translations);
}

std::vector<int32_t> Lexicon::Shortlist(absl::Span<const int32_t> source, int64_t max_translations) const {
  std::vector<int32_t> ids;
  const auto add = [&](const std::vector<Translation>& entries) {
    const size_t count = std::min(entries.size(), static_cast<size_t>(max_translations));
    for (size_t i = 0; i < count; ++i) ids.push_back(entries[i].target);
  };
  add(null_translations);
  for (const int32_t token : source) {
    if (token >= 0 && static_cast<size_t>(token) < translations.size()) add(translations[static_cast<size_t>(token)]);
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

absl::StatusOr<Lexicon> ReadLexicon(const std::string& path, const LexiconVocabularies& vocabularies) {
  if (path == kStandardInput) return InvalidArgument("a lexicon cannot be read from standard input");
  const IdsByText sources = ByText(vocabularies.source), targets = ByText(vocabularies.target);
  Lexicon lexicon;
  lexicon.translations.resize(vocabularies.source.size());
  LineReader reader({path});
  size_t lines = 0, kept = 0;
  while (true) {
    WEFT_ASSIGN_OR_RETURN(const TextLines next, reader.Next(kLinesAtOnce));
    if (next.lines.empty()) break;
    lines += next.lines.size();
    for (size_t i = 0; i < next.lines.size(); ++i) {
      WEFT_ASSIGN_OR_RETURN(const Line line, Annotate(Parse(next.lines[i]), next.Location(i)));
      const std::optional<int32_t> target = Find(targets, line.target), source = Find(sources, line.source);
      const bool of_null = line.source == kNull;
      if (line.target == kNull || !target.has_value() || (!source.has_value() && !of_null)) continue;
      ++kept;
      (of_null ? lexicon.null_translations : lexicon.translations[static_cast<size_t>(*source)])
          .push_back({*target, line.probability});
    }
  }
  if (kept == 0) {
    return InvalidArgument(path, ": none of its ", lines, " lines has a token of both vocabularies of the model");
  }
  constexpr int64_t kAll = std::numeric_limits<int64_t>::max();
  SortAndCut(&lexicon.null_translations, kAll);
  for (std::vector<Translation>& translations : lexicon.translations) SortAndCut(&translations, kAll);
  return lexicon;
}

absl::StatusOr<int64_t> WriteLexicon(const std::string& path, const Lexicon& lexicon,
                                     const LexiconVocabularies& vocabularies, IfThere if_there) {
  std::string text;
  int64_t lines = 0;
  const auto add = [&](absl::string_view source, const std::vector<Translation>& translations) {
    for (const Translation& translation : translations) {
      const std::string& target = vocabularies.target[static_cast<size_t>(translation.target)];
      if (!CanBeWritten(target)) continue;
      absl::StrAppendFormat(&text, "%s %s %.8g\n", target, source, translation.probability);
      ++lines;
    }
  };
  add(kNull, lexicon.null_translations);
  for (size_t i = 0; i < lexicon.translations.size(); ++i) {
    if (CanBeWritten(vocabularies.source[i])) add(vocabularies.source[i], lexicon.translations[i]);
  }
  WEFT_RETURN_IF_ERROR(WriteFile(path, {text}, if_there));
  return lines;
}

}  // namespace weft
