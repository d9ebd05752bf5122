// TranslationMeasures lists the measures of translations: BLEU, chrF and chrF++. A new measure is a row.
//
//   for (const TranslationMeasure& measure : TranslationMeasures()) {
//     WEFT_ASSIGN_OR_RETURN(const LineCounts counts, measure.count(translations, references, /*lowercase=*/false));
//     std::printf("%s %.2f\n", measure.name, measure.score(Sum(counts)));
//   }
#ifndef WEFT_TEXT_MEASURES_TRANSLATION_MEASURES_H_
#define WEFT_TEXT_MEASURES_TRANSLATION_MEASURES_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/text/measures/ngrams.h"

namespace weft {

struct TranslationMeasure {
  const char* name;           // "chrf++"
  const char* key;            // in JSON: "chrf_plus_plus"
  const char* signature_key;  // in JSON: "chrf_plus_plus_signature"
  absl::StatusOr<LineCounts> (*count)(absl::Span<const std::string> translations, References references,
                                      bool lowercase);
  double (*score)(absl::Span<const int64_t> sums);  // 0 .. 100
  std::string (*signature)(bool lowercase, size_t references);
};
absl::Span<const TranslationMeasure> TranslationMeasures();

}  // namespace weft

#endif  // WEFT_TEXT_MEASURES_TRANSLATION_MEASURES_H_
