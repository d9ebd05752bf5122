// LayersOfRun collects the histograms of a run's weights, and how fast the weights change, for the page of a RunReport.
// docs/commands.md describes the lines of insights.jsonl, from which it reads them.
#ifndef WEFT_LAB_REPORTS_RUN_LAYERS_H_
#define WEFT_LAB_REPORTS_RUN_LAYERS_H_

#include <cstddef>
#include <nlohmann/json.hpp>

#include "absl/types/span.h"

namespace weft {

// Returns {"names": [...], "steps": [...], "updates": [...], "histograms": [...], "of": N, "of_names": M}. Element
// [layer][evaluation] of "updates" is log10 of the update's RMS divided by the weight's RMS, or null; that of
// "histograms" is [lowest, highest, [counts]], or null. `evaluations`: the lines of insights.jsonl. `runs`: the number
// of runs that share the page. Many evaluations are thinned out evenly, and "of" is their number before that. Likewise
// "of_names" for the weights, of which the first remain.
nlohmann::ordered_json LayersOfRun(absl::Span<const nlohmann::json> evaluations, size_t runs);

}  // namespace weft

#endif  // WEFT_LAB_REPORTS_RUN_LAYERS_H_
