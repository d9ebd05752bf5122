// What the files of `weft evaluate` share: the flags, and the figures that it prints.
#ifndef WEFT_APPS_EVALUATE_FIGURES_H_
#define WEFT_APPS_EVALUATE_FIGURES_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "weft/apps/flags.h"
#include "weft/apps/use/generator_rows.h"
#include "weft/inference/runtime/runtime.h"
#include "weft/text/data/labelled_examples.h"

namespace weft {

struct EvaluateFlags : ModelFlags {
  std::string tokenizer, labels, source, references, translations, baseline;
  double masked = 0.15;
  uint64_t seed = 1;
  int64_t stride = 0, resamples = 1000;
  RuntimeOptions runtime;
  std::optional<bool> special_tokens;
  bool lowercase = false, truncate = false, json = false;
  TranslationOptions translation;  // OpenTranslator sets all its members from `given`, the command line's flags
  LabelledDataOptions data;
  bool pairs = false;
};

struct Figure {
  std::string name;  // the figure's key in JSON; empty: not printed in JSON, and `text` is whole lines
  nlohmann::ordered_json value;
  std::string text;  // the figure as text; empty: printed in JSON only
  std::string title = name;
};
using Figures = std::vector<Figure>;

inline Figure Count(const std::string& name, int64_t count) { return {name, count, absl::StrCat(count)}; }

// Measures the translations of --source by --model, or the finished --translations.
absl::StatusOr<Figures> MeasureTransformer(const EvaluateFlags& flags);
absl::StatusOr<Figures> MeasureTranslations(const EvaluateFlags& flags);

}  // namespace weft

#endif  // WEFT_APPS_EVALUATE_FIGURES_H_
