// These functions cut lines into words or characters, and count n-grams of them, as measures of translations need.
//
//   const UnitLine line = JoinWords(SplitWords("the cat sat"));
//   line.NGram(0, 2)   // "the cat"
//
// Bytes that are not UTF-8 are characters, each of its own, and part of words.
//
// A measure computes the score of any set of lines from the sums of their counts, so that other sets need no new
// counting.
//
//   WEFT_ASSIGN_OR_RETURN(const LineCounts counts, BleuCounts(translations, references));   // translation_measures.h
//   const BleuScore bleu = BleuOf(Sum(counts));
#ifndef WEFT_TEXT_MEASURES_NGRAMS_H_
#define WEFT_TEXT_MEASURES_NGRAMS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace weft {

// Returns the words between white space, as Python's str.split finds them.
std::vector<absl::string_view> SplitWords(absl::string_view text);
// Returns `text` in lowercase, as Python's str.lower does: 'Σ' at the end of a word gives 'ς'.
std::string Lowercase(absl::string_view text);

// A text and the places of its units, which are words or characters.
struct UnitLine {
  std::string text;
  std::vector<std::pair<size_t, size_t>> units;  // begin and end in `text`

  // Returns the text of `n` units from unit `first` on, or "" if there are fewer.
  absl::string_view NGram(size_t first, size_t n) const;
};
// Returns the words, joined with spaces.
UnitLine JoinWords(absl::Span<const absl::string_view> words);
// Returns the characters of `text` that are not white space.
UnitLine JoinCharacters(absl::string_view text);

// Maps each n-gram to its number of occurrences.
using NGramCounts = absl::flat_hash_map<absl::string_view, int64_t>;
// Returns the counts of the n-grams of `n` units. `line` must outlive them.
NGramCounts CountNGrams(const UnitLine& line, size_t n);
// Returns the number of all n-grams.
int64_t Total(const NGramCounts& counts);
// Returns how many of the n-grams `counts` are in `wanted`. An n-gram matches at most as often as it is in `wanted`.
int64_t Matches(const NGramCounts& counts, const NGramCounts& wanted);

// What a measure counts in each line, such as matching n-grams. All rows have the same length.
using LineCounts = std::vector<std::vector<int64_t>>;
// Returns the sums over all lines, which are no counts if there are no lines.
std::vector<int64_t> Sum(const LineCounts& counts);

// One or more reference translations of each line: references[r][i] is reference `r` of line `i`.
using References = absl::Span<const std::vector<std::string>>;
// Returns InvalidArgument if there is no reference, or if the numbers of lines differ.
absl::Status CheckReferences(size_t translations, References references);

}  // namespace weft

#endif  // WEFT_TEXT_MEASURES_NGRAMS_H_
