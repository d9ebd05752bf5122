#include "weft/text/measures/translation_measures.h"

#include "weft/text/measures/bleu.h"
#include "weft/text/measures/chrf.h"

namespace weft {
namespace {

double ScoreBleu(absl::Span<const int64_t> sums) { return BleuOf(sums).score; }

template <size_t kWords>
absl::StatusOr<LineCounts> CountChrf(absl::Span<const std::string> translations, References references,
                                     bool lowercase) {
  return ChrfCounts(translations, references, {.words = kWords, .lowercase = lowercase});
}
template <size_t kWords>
std::string SignChrf(bool lowercase, size_t references) {
  return ChrfSignature({.words = kWords, .lowercase = lowercase}, references);
}

constexpr TranslationMeasure kMeasures[] = {
    {"bleu", "bleu", "signature", BleuCounts, ScoreBleu, BleuSignature},
    {"chrf", "chrf", "chrf_signature", CountChrf<0>, ChrfOf, SignChrf<0>},
    {"chrf++", "chrf_plus_plus", "chrf_plus_plus_signature", CountChrf<2>, ChrfOf, SignChrf<2>},
};

}  // namespace

absl::Span<const TranslationMeasure> TranslationMeasures() { return kMeasures; }

}  // namespace weft
