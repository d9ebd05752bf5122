// ChrfCounts counts n-grams line by line, and ChrfOf computes one score from the sums.
#include "weft/text/measures/chrf.h"

#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "weft/base/status.h"

namespace weft {
namespace {

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

// A line and the counts of its n-grams: of 1 to 6 characters, then of words.
struct CountedLine {
  UnitLine characters, words;
  std::vector<NGramCounts> ngrams;

  CountedLine(const std::string& line, const ChrfOptions& options) {
    const std::string text = options.lowercase ? Lowercase(line) : line;
    characters = JoinCharacters(text);
    words = JoinWords(WordsAndPunctuation(text));
    for (size_t n = 1; n <= kCharacters; ++n) ngrams.push_back(CountNGrams(characters, n));
    for (size_t n = 1; n <= options.words; ++n) ngrams.push_back(CountNGrams(words, n));
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

}  // namespace

absl::StatusOr<double> CorpusChrf(absl::Span<const std::string> translations, References references,
                                  const ChrfOptions& options) {
  WEFT_ASSIGN_OR_RETURN(const LineCounts counts, ChrfCounts(translations, references, options));
  return ChrfOf(Sum(counts));
}

absl::StatusOr<LineCounts> ChrfCounts(absl::Span<const std::string> translations, References references,
                                      const ChrfOptions& options) {
  WEFT_RETURN_IF_ERROR(CheckReferences(translations.size(), references));
  LineCounts counts(translations.size());
  for (size_t i = 0; i < translations.size(); ++i) {
    const CountedLine translation(translations[i], options);
    double best = -1;
    for (const std::vector<std::string>& reference : references) {
      std::vector<int64_t> line = CountMatches(translation, CountedLine(reference[i], options));
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

std::string ChrfSignature(const ChrfOptions& options, size_t references) {
  return absl::StrCat("nrefs:", references, "|case:", options.lowercase ? "lc" : "mixed", "|eff:yes|nc:", kCharacters,
                      "|nw:", options.words, "|space:no|version:2.6.0");
}

}  // namespace weft
