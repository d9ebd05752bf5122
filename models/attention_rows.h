// Rows for the options of attention, which all model families have (models/options.h), and for sizes.
#ifndef WEFT_MODELS_ATTENTION_ROWS_H_
#define WEFT_MODELS_ATTENTION_ROWS_H_

#include <cstdint>
#include <utility>

#include "weft/models/attention.h"
#include "weft/options/hyperparameters.h"

namespace weft {

inline constexpr std::pair<const char*, ScoreFunction> kScoreNames[] = {{"dot", ScoreFunction::kDot},
                                                                        {"additive", ScoreFunction::kAdditive}};
inline constexpr std::pair<const char*, HeadMerge> kMergeNames[] = {{"project", HeadMerge::kProject},
                                                                    {"average", HeadMerge::kAverage}};

inline constexpr double kMost = 1e6;  // of a width or a number of positions

// Returns a row for a whole number from `low` to `high`.
inline Hyperparameter Size(const char* flag, const char* help, int64_t* value, double high, double low = 1,
                           const char* needs = "") {
  return {flag, help, value, {.low = low, .high = high, .needs = needs}};
}

// The rows point into `attention`, which must outlive them.
Hyperparameters AttentionRows(AttentionVariant* attention);

}  // namespace weft

#endif  // WEFT_MODELS_ATTENTION_ROWS_H_
