// ModelRows lists the options of each model family as rows, by which command lines and configuration files set them
// (options/hyperparameters.h). A new field of a configuration needs a row here.
//
//   GptConfig config;
//   for (const Hyperparameter& row : ModelRows(&config)) {
//     if (row.flag == "rotary") WEFT_RETURN_IF_ERROR(SetFromText("halves", row));
//   }
//
// Sizes that follow from the data have no rows: those of vocabularies and images, and the number of classes.
#ifndef WEFT_MODELS_OPTIONS_H_
#define WEFT_MODELS_OPTIONS_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "weft/models/attention.h"
#include "weft/models/bert.h"
#include "weft/models/gpt.h"
#include "weft/models/layers.h"
#include "weft/models/transformer.h"
#include "weft/models/vit.h"
#include "weft/options/hyperparameters.h"

namespace weft {

// The rows point into `config`, which must outlive them. Rows that may change in a resumed run have the rule
// `may_change`: they change no weight's shape, and no result of inference.
Hyperparameters ModelRows(GptConfig* config);
Hyperparameters ModelRows(BertConfig* config);
Hyperparameters ModelRows(TransformerConfig* config);
Hyperparameters ModelRows(VitConfig* config);

inline constexpr std::pair<const char*, ScoreFunction> kScoreNames[] = {{"dot", ScoreFunction::kDot},
                                                                        {"additive", ScoreFunction::kAdditive}};
inline constexpr std::pair<const char*, HeadMerge> kMergeNames[] = {{"project", HeadMerge::kProject},
                                                                    {"average", HeadMerge::kAverage}};

inline constexpr double kMaxWidth = 1e6;  // also of a number of positions

// Returns a row for a whole number from `low` to `high`.
inline Hyperparameter Size(const char* flag, const char* help, int64_t* value, double high, double low = 1,
                           const char* needs = "") {
  return {flag, help, value, {.low = low, .high = high, .needs = needs}};
}
// Return a row for a number: AtLeast0 accepts 0, Above0 does not.
inline Hyperparameter AtLeast0(const char* flag, const char* help, double* value, const char* needs = "") {
  return {flag, help, value, {.low = 0, .needs = needs}};
}
inline Hyperparameter Above0(const char* flag, const char* help, double* value, const char* needs = "") {
  return {flag, help, value, {.low = 1e-30, .needs = needs, .type = "X>0"}};
}

// Returns the rows of the options of attention, which all families have. They point into `attention`.
Hyperparameters AttentionRows(AttentionVariant* attention);

// Returns the names of the parts that are left out: "residual,query-is-key"; "none" for none.
std::string ToText(const Ablation& ablation);
// Reads the text that ToText returns. Parts may stand in any order, with '_' in place of '-'.
absl::StatusOr<Ablation> AblationFromText(absl::string_view text);

}  // namespace weft

#endif  // WEFT_MODELS_OPTIONS_H_
