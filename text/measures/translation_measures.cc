// A measure counts n-grams line by line, and computes one score from the sums.
#include "weft/text/measures/translation_measures.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "weft/base/status.h"
#include "weft/core/random.h"

namespace weft {
namespace {

constexpr int kOrders = 4;

// Reports whether `c` is always a word of its own: ASCII punctuation except ' , - and . which can be inside a word.
bool StandsAlone(char c) { return absl::ascii_ispunct(c) && c != '\'' && c != ',' && c != '-' && c != '.'; }

bool IsStop(char c) { return c == '.' || c == ','; }
bool IsDigit(char c) { return absl::ascii_isdigit(c); }

absl::string_view WithoutTrailingSpace(absl::string_view text) {
  const std::vector<absl::string_view> words = SplitWords(text);
  return words.empty() ? "" : text.substr(0, static_cast<size_t>(words.back().end() - text.begin()));
}

// Finds pairs of neighbouring bytes that `is_pair` accepts, from the left; pairs don't overlap. Inserts `before` before
// each pair, `between` between the two bytes of the pair, and `after` after the pair.
template <class Predicate>
std::string SeparatePairs(absl::string_view text, const Predicate& is_pair, const char* between, const char* before,
                          const char* after) {
  std::string separated;
  for (size_t i = 0; i < text.size(); ++i) {
    if (i + 1 == text.size() || !is_pair(text[i], text[i + 1])) {
      separated += text[i];
      continue;
    }
    absl::StrAppend(&separated, before, text.substr(i, 1), between, text.substr(i + 1, 1), after);
    ++i;
  }
  return separated;
}

UnitLine ReadLine(absl::string_view raw, bool lowercase) {
  const std::string words = TokenizeForBleu(lowercase ? Lowercase(raw) : raw);
  return JoinWords(SplitWords(words));
}

// Returns the length among `lengths` that is nearest to `length`. Of two that are equally near, returns the shorter.
size_t Nearest(size_t length, const std::vector<size_t>& lengths) {
  const auto distance = [&](size_t l) { return std::pair(l < length ? length - l : l - length, l); };
  return *absl::c_min_element(lengths, [&](size_t a, size_t b) { return distance(a) < distance(b); });
}

std::vector<int64_t> CountLine(const UnitLine& translation, const std::vector<UnitLine>& references) {
  std::vector<size_t> lengths;
  for (const UnitLine& reference : references) lengths.push_back(reference.units.size());
  std::vector<int64_t> counts = {static_cast<int64_t>(translation.units.size()),
                                 static_cast<int64_t>(Nearest(translation.units.size(), lengths))};
  std::vector<int64_t> totals;
  for (size_t n = 1; n <= kOrders; ++n) {
    NGramCounts most;  // occurrences in the reference that has most of them
    for (const UnitLine& reference : references) {
      for (const auto& [ngram, count] : CountNGrams(reference, n)) most[ngram] = std::max(most[ngram], count);
    }
    const NGramCounts ngrams = CountNGrams(translation, n);
    counts.push_back(Matches(ngrams, most));
    totals.push_back(Total(ngrams));
  }
  counts.insert(counts.end(), totals.begin(), totals.end());
  return counts;
}

constexpr size_t kCharacters = 6;        // length of the longest n-gram of characters
constexpr double kRecallWeight = 2 * 2;  // the square of beta, the factor by which recall counts more than precision

// Returns the words of `line`. One ASCII punctuation mark at the end of a word, or else at its beginning, is a word of
// its own.
std::vector<absl::string_view> WordsAndPunctuation(absl::string_view line) {
  std::vector<absl::string_view> words;
  for (const absl::string_view word : SplitWords(line)) {
    if (word.size() > 1 && absl::ascii_ispunct(word.back())) {
      words.push_back(word.substr(0, word.size() - 1));
      words.push_back(word.substr(word.size() - 1));
    } else if (word.size() > 1 && absl::ascii_ispunct(word[0])) {
      words.push_back(word.substr(0, 1));
      words.push_back(word.substr(1));
    } else {
      words.push_back(word);
    }
  }
  return words;
}

// A line and the counts of its n-grams: of 1 to 6 characters, then of 1 to `longest` words.
struct CountedLine {
  UnitLine characters, words;
  std::vector<NGramCounts> ngrams;

  CountedLine(const std::string& line, size_t longest, bool lowercase) {
    const std::string text = lowercase ? Lowercase(line) : line;
    characters = JoinCharacters(text);
    words = JoinWords(WordsAndPunctuation(text));
    for (size_t n = 1; n <= kCharacters; ++n) ngrams.push_back(CountNGrams(characters, n));
    for (size_t n = 1; n <= longest; ++n) ngrams.push_back(CountNGrams(words, n));
  }
  CountedLine(CountedLine&&) = delete;  // the n-grams are parts of the texts
};

std::vector<int64_t> CountMatches(const CountedLine& translation, const CountedLine& reference) {
  std::vector<int64_t> counts;
  for (size_t i = 0; i < translation.ngrams.size(); ++i) {
    const NGramCounts &ngrams = translation.ngrams[i], &wanted = reference.ngrams[i];
    // If the reference is too short for such an n-gram, those of the translation do not count.
    counts.insert(counts.end(), {wanted.empty() ? 0 : Total(ngrams), Total(wanted), Matches(ngrams, wanted)});
  }
  return counts;
}

double ScoreBleu(absl::Span<const int64_t> sums) { return BleuOf(sums).score; }

BootstrapScore Summarise(double score, std::vector<double> resampled) {
  absl::c_sort(resampled);
  const size_t outside = resampled.size() / 40;
  return {.score = score,
          .mean = absl::c_accumulate(resampled, 0.0) / static_cast<double>(resampled.size()),
          .low = resampled[outside],
          .high = resampled[resampled.size() - outside - 1]};
}

}  // namespace

std::string TokenizeForBleu(absl::string_view line) {
  std::string text = absl::StrReplaceAll(WithoutTrailingSpace(line), {{"<skipped>", ""}});
  text = absl::StrReplaceAll(text, {{"-\n", ""}});
  // The order matters: "&amp;lt;" becomes "<".
  for (const auto& [entity, character] : {std::pair("&quot;", "\""), {"&amp;", "&"}, {"&lt;", "<"}, {"&gt;", ">"}}) {
    text = absl::StrReplaceAll(text, {{entity, character}});
  }
  std::string spaced = " ";
  for (const char c : text) {
    if (StandsAlone(c)) {
      spaced.append({' ', c, ' '});
    } else {
      spaced += c;
    }
  }
  spaced += ' ';
  // Full stops and commas become words of their own, except between digits. A hyphen after a digit also becomes a word.
  spaced = SeparatePairs(
      spaced, [](char a, char b) { return !IsDigit(a) && IsStop(b); }, " ", "", " ");
  spaced = SeparatePairs(
      spaced, [](char a, char b) { return IsStop(a) && !IsDigit(b); }, " ", " ", "");
  spaced = SeparatePairs(
      spaced, [](char a, char b) { return IsDigit(a) && b == '-'; }, " ", "", " ");
  return JoinWords(SplitWords(spaced)).text;
}

absl::StatusOr<BleuScore> CorpusBleu(absl::Span<const std::string> translations,
                                     absl::Span<const std::string> references, bool lowercase) {
  const std::vector<std::string> lines(references.begin(), references.end());
  WEFT_ASSIGN_OR_RETURN(const LineCounts counts, BleuCounts(translations, {&lines, 1}, lowercase));
  return BleuOf(Sum(counts));
}

absl::StatusOr<LineCounts> BleuCounts(absl::Span<const std::string> translations, References references,
                                      bool lowercase) {
  WEFT_RETURN_IF_ERROR(CheckReferences(translations.size(), references));
  LineCounts counts;
  for (size_t i = 0; i < translations.size(); ++i) {
    std::vector<UnitLine> lines;
    for (const std::vector<std::string>& reference : references) lines.push_back(ReadLine(reference[i], lowercase));
    counts.push_back(CountLine(ReadLine(translations[i], lowercase), lines));
  }
  return counts;
}

BleuScore BleuOf(absl::Span<const int64_t> sums) {
  BleuScore bleu;
  if (!sums.empty()) {
    bleu.translation_length = sums[0];
    bleu.reference_length = sums[1];
    absl::c_copy(sums.subspan(2, kOrders), bleu.matches.begin());
    absl::c_copy(sums.subspan(2 + kOrders, kOrders), bleu.totals.begin());
  }
  const double ratio = static_cast<double>(bleu.reference_length) / static_cast<double>(bleu.translation_length);
  bleu.brevity_penalty = bleu.translation_length >= bleu.reference_length ? 1
                         : bleu.translation_length > 0                    ? std::exp(1 - ratio)
                                                                          : 0;
  if (bleu.matches[0] == 0) return bleu;
  double smooth = 1, logarithms = 0;
  for (size_t n = 0; n < kOrders && bleu.totals[n] > 0; ++n) {
    if (bleu.matches[n] == 0) smooth *= 2;
    const double matches = bleu.matches[n] == 0 ? 1 / smooth : static_cast<double>(bleu.matches[n]);
    bleu.precisions[n] = 100 * matches / static_cast<double>(bleu.totals[n]);
    logarithms += std::log(bleu.precisions[n]);
  }
  // The score is the brevity penalty times the geometric mean of the precisions. If no translation has four words,
  // there is no 4-gram precision, and the score stays 0.
  if (bleu.totals.back() > 0) bleu.score = bleu.brevity_penalty * std::exp(logarithms / kOrders);
  return bleu;
}

std::string BleuSignature(bool lowercase, size_t references) {
  return absl::StrCat("nrefs:", references, "|case:", lowercase ? "lc" : "mixed",
                      "|eff:no|tok:13a|smooth:exp|version:2.6.0");
}

std::string BleuScore::ToString() const {
  const double ratio =
      reference_length == 0 ? 0 : static_cast<double>(translation_length) / static_cast<double>(reference_length);
  return absl::StrFormat("BLEU = %.2f %.1f/%.1f/%.1f/%.1f (BP = %.3f ratio = %.3f hyp_len = %d ref_len = %d)", score,
                         precisions[0], precisions[1], precisions[2], precisions[3], brevity_penalty, ratio,
                         translation_length, reference_length);
}

template <size_t words>
absl::StatusOr<LineCounts> ChrfCounts(absl::Span<const std::string> translations, References references,
                                      bool lowercase) {
  WEFT_RETURN_IF_ERROR(CheckReferences(translations.size(), references));
  LineCounts counts(translations.size());
  for (size_t i = 0; i < translations.size(); ++i) {
    const CountedLine translation(translations[i], words, lowercase);
    double best = -1;
    for (const std::vector<std::string>& reference : references) {
      std::vector<int64_t> line = CountMatches(translation, CountedLine(reference[i], words, lowercase));
      const double score = ChrfOf(line);
      if (score <= best) continue;
      best = score;
      counts[i] = std::move(line);
    }
  }
  return counts;
}

double ChrfOf(absl::Span<const int64_t> sums) {
  double precision = 0, recall = 0;
  int lengths = 0;  // number of lengths of n-grams that count
  for (size_t i = 0; i + 2 < sums.size(); i += 3) {
    if (sums[i] == 0 || sums[i + 1] == 0) continue;
    const auto matches = static_cast<double>(sums[i + 2]);
    precision += matches / static_cast<double>(sums[i]);
    recall += matches / static_cast<double>(sums[i + 1]);
    ++lengths;
  }
  if (precision + recall == 0) return 0;
  precision /= lengths;
  recall /= lengths;
  return 100 * (1 + kRecallWeight) * precision * recall / (kRecallWeight * precision + recall);
}

template <size_t words>
std::string ChrfSignature(bool lowercase, size_t references) {
  return absl::StrCat("nrefs:", references, "|case:", lowercase ? "lc" : "mixed", "|eff:yes|nc:", kCharacters,
                      "|nw:", words, "|space:no|version:2.6.0");
}

template absl::StatusOr<LineCounts> ChrfCounts<0>(absl::Span<const std::string>, References, bool);
template absl::StatusOr<LineCounts> ChrfCounts<2>(absl::Span<const std::string>, References, bool);
template std::string ChrfSignature<0>(bool, size_t);
template std::string ChrfSignature<2>(bool, size_t);

absl::Span<const TranslationMeasure> TranslationMeasures() {
  static constexpr TranslationMeasure kMeasures[] = {
      {"bleu", "bleu", "signature", BleuCounts, ScoreBleu, BleuSignature},
      {"chrf", "chrf", "chrf_signature", ChrfCounts<0>, ChrfOf, ChrfSignature<0>},
      {"chrf++", "chrf_plus_plus", "chrf_plus_plus_signature", ChrfCounts<2>, ChrfOf, ChrfSignature<2>},
  };
  return kMeasures;
}

BootstrapComparison PairedBootstrap(const LineCounts& system, const LineCounts& baseline, CorpusScore score,
                                    const BootstrapOptions& options) {
  const auto draw = [&](size_t resample, size_t i) {
    const RandomStream random = {
        .seed = options.seed, .stream = kResampleStream, .step = static_cast<uint32_t>(resample)};
    return static_cast<size_t>(random.Below(system.size(), i));
  };
  return PairedBootstrap(system, baseline, score, options.resamples, draw);
}

BootstrapComparison PairedBootstrap(const LineCounts& system, const LineCounts& baseline, CorpusScore score,
                                    int64_t resamples, absl::FunctionRef<size_t(size_t resample, size_t i)> draw) {
  WEFT_CHECK(!system.empty() && system.size() == baseline.size() && resamples > 0);
  std::vector<double> systems, baselines, differences;
  std::vector<int64_t> system_sums, baseline_sums;
  for (size_t resample = 0; resample < static_cast<size_t>(resamples); ++resample) {
    system_sums.assign(system[0].size(), 0);
    baseline_sums.assign(baseline[0].size(), 0);
    for (size_t i = 0; i < system.size(); ++i) {
      const size_t line = draw(resample, i);
      for (size_t j = 0; j < system_sums.size(); ++j) system_sums[j] += system[line][j];
      for (size_t j = 0; j < baseline_sums.size(); ++j) baseline_sums[j] += baseline[line][j];
    }
    systems.push_back(score(system_sums));
    baselines.push_back(score(baseline_sums));
    differences.push_back(systems.back() - baselines.back());
  }
  const double system_score = score(Sum(system)), baseline_score = score(Sum(baseline));
  const double difference = system_score - baseline_score;
  double mean = 0;  // of the absolute differences
  for (const double each : differences) mean += std::abs(each) / static_cast<double>(resamples);
  const auto larger =
      absl::c_count_if(differences, [&](double each) { return std::abs(each) - mean > std::abs(difference); });
  const bool same = absl::c_all_of(differences, [](double each) { return each == 0; });
  return {.system = Summarise(system_score, std::move(systems)),
          .baseline = Summarise(baseline_score, std::move(baselines)),
          .difference = Summarise(difference, std::move(differences)),
          .p_value = same ? 1 : static_cast<double>(larger + 1) / static_cast<double>(resamples + 1)};
}

}  // namespace weft
