// CorpusBleu counts n-grams line by line, then computes one score from the sums. Lines are split into words as in
// sacreBLEU, by the rules of mteval-v13a.
#include "weft/text/bleu.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "weft/core/status.h"
#include "weft/text/unicode.h"
#include "weft/text/utf8.h"

namespace weft {
namespace {

constexpr int kOrders = 4;

// Reports whether Python's str.split splits at `c`.
bool IsSeparator(int32_t c) { return IsSpace(c) || (0x1C <= c && c <= 0x1F); }

// Reports whether `c` is always a word of its own: ASCII punctuation except ' , - and . which can be inside a word.
bool StandsAlone(char c) { return absl::ascii_ispunct(c) && c != '\'' && c != ',' && c != '-' && c != '.'; }

bool IsStop(char c) { return c == '.' || c == ','; }
bool IsDigit(char c) { return absl::ascii_isdigit(c); }

// Calls `word` with each word between separators. Bytes that are not UTF-8 are part of a word.
template <class Function>
void ForEachWord(absl::string_view text, const Function& word) {
  size_t begin = 0, i = 0;
  const auto finish = [&] {
    if (i > begin) word(text.substr(begin, i - begin));
  };
  while (i < text.size()) {
    const Utf8Character c = CharacterAt(text, i);
    if (c.bytes > 0 && IsSeparator(c.code_point)) {
      finish();
      begin = i + c.bytes;
    }
    i += std::max<size_t>(c.bytes, 1);
  }
  finish();
}

absl::string_view WithoutTrailingSpace(absl::string_view text) {
  size_t end = 0;
  ForEachWord(text, [&](absl::string_view word) { end = static_cast<size_t>(word.end() - text.begin()); });
  return text.substr(0, end);
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

struct Line {
  std::string text;                              // words joined with spaces
  std::vector<std::pair<size_t, size_t>> words;  // begin and end
};

Line ReadLine(absl::string_view raw, const BleuOptions& options) {
  std::string lower;
  if (options.lowercase) {
    for (size_t i = 0; i < raw.size();) {
      const Utf8Character c = CharacterAt(raw, i);
      if (c.bytes == 0) {
        lower += raw[i];
      } else {
        AppendLowercase(c.code_point, &lower);
      }
      i += std::max<size_t>(c.bytes, 1);
    }
    raw = lower;
  }
  Line line = {TokenizeForBleu(raw)};
  for (size_t begin = 0; begin < line.text.size();) {
    const size_t end = std::min(line.text.find(' ', begin), line.text.size());
    line.words.emplace_back(begin, end);
    begin = end + 1;
  }
  return line;
}

// Maps each n-gram of 1 to 4 words to its number of occurrences.
using Counts = absl::flat_hash_map<absl::string_view, int64_t>;

// Returns `n` words from word `first` on, with the spaces between them, or "" if the line has fewer words.
absl::string_view NGram(const Line& line, size_t first, size_t n) {
  if (first + n > line.words.size()) return {};
  const size_t begin = line.words[first].first;
  return absl::string_view(line.text).substr(begin, line.words[first + n - 1].second - begin);
}

void AddLine(const Line& translation, const Line& reference, BleuScore* bleu) {
  Counts left;  // occurrences in the reference that are not matched yet
  for (size_t first = 0; first < reference.words.size(); ++first) {
    for (size_t n = 1; n <= kOrders; ++n) {
      if (const absl::string_view ngram = NGram(reference, first, n); !ngram.empty()) ++left[ngram];
    }
  }
  for (size_t first = 0; first < translation.words.size(); ++first) {
    for (size_t n = 1; n <= kOrders; ++n) {
      const absl::string_view ngram = NGram(translation, first, n);
      if (ngram.empty()) break;
      ++bleu->totals[n - 1];
      const auto found = left.find(ngram);
      if (found != left.end() && found->second-- > 0) ++bleu->matches[n - 1];
    }
  }
  bleu->translation_length += static_cast<int64_t>(translation.words.size());
  bleu->reference_length += static_cast<int64_t>(reference.words.size());
}

// Computes the precisions, the brevity penalty, and the score: the penalty times the geometric mean of the precisions.
void Finish(BleuScore* bleu) {
  const double ratio = static_cast<double>(bleu->reference_length) / static_cast<double>(bleu->translation_length);
  bleu->brevity_penalty = bleu->translation_length >= bleu->reference_length ? 1
                          : bleu->translation_length > 0                     ? std::exp(1 - ratio)
                                                                             : 0;
  if (bleu->matches[0] == 0) return;
  double smooth = 1, logarithms = 0;
  for (size_t n = 0; n < kOrders && bleu->totals[n] > 0; ++n) {
    if (bleu->matches[n] == 0) smooth *= 2;
    const double matches = bleu->matches[n] == 0 ? 1 / smooth : static_cast<double>(bleu->matches[n]);
    bleu->precisions[n] = 100 * matches / static_cast<double>(bleu->totals[n]);
    logarithms += std::log(bleu->precisions[n]);
  }
  // If no translation has four words, there is no 4-gram precision, and the score stays 0.
  if (bleu->totals.back() > 0) bleu->score = bleu->brevity_penalty * std::exp(logarithms / kOrders);
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
  std::string words;
  ForEachWord(spaced, [&](absl::string_view word) { absl::StrAppend(&words, words.empty() ? "" : " ", word); });
  return words;
}

absl::StatusOr<BleuScore> CorpusBleu(absl::Span<const std::string> translations,
                                     absl::Span<const std::string> references, const BleuOptions& options) {
  if (translations.size() != references.size()) {
    return InvalidArgument("there are ", translations.size(), " translations, but ", references.size(), " references");
  }
  BleuScore bleu;
  for (size_t i = 0; i < translations.size(); ++i) {
    AddLine(ReadLine(translations[i], options), ReadLine(references[i], options), &bleu);
  }
  Finish(&bleu);
  return bleu;
}

std::string BleuSignature(const BleuOptions& options) {
  return absl::StrCat("nrefs:1|case:", options.lowercase ? "lc" : "mixed", "|eff:no|tok:13a|smooth:exp|version:2.6.0");
}

std::string BleuScore::ToString() const {
  const double ratio =
      reference_length == 0 ? 0 : static_cast<double>(translation_length) / static_cast<double>(reference_length);
  return absl::StrFormat("BLEU = %.2f %.1f/%.1f/%.1f/%.1f (BP = %.3f ratio = %.3f hyp_len = %d ref_len = %d)", score,
                         precisions[0], precisions[1], precisions[2], precisions[3], brevity_penalty, ratio,
                         translation_length, reference_length);
}

}  // namespace weft
