#include "weft/lab/demos/evaluate_once.h"

#include "weft/core/parameters.h"
#include "weft/core/status.h"
#include "weft/graph/compile.h"

namespace weft {

absl::StatusOr<std::vector<Numbers>> EvaluateOnce(const Tape& tape, const VarList& fetch,
                                                  const EvaluateOnceOptions& options) {
  WEFT_ASSIGN_OR_RETURN(const Graph graph, Compile(tape, {.fetch = fetch}));
  Parameters parameters({.seed = options.seed});
  Runner runner(graph, &parameters);
  WEFT_ASSIGN_OR_RETURN(const Outputs out, runner.Run(options.feeds));
  std::vector<Numbers> values;
  for (const Var& var : fetch) {
    if (var.dtype() == kF64) {
      const absl::Span<const double> all = out[var].span<const double>();
      values.emplace_back(all.begin(), all.end());
    } else {
      const absl::Span<const float> all = out[var].span<const float>();
      values.emplace_back(all.begin(), all.end());
    }
  }
  return values;
}

}  // namespace weft
