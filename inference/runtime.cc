#include "weft/inference/runtime.h"

#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "weft/core/status.h"

namespace weft {
namespace {

// Reports whether a number is NaN or infinity. The result may be -infinity where a graph masks. The loop has no branch,
// so that it becomes vector code.
bool HasOverflow(absl::Span<const float> numbers) {
  int found = 0;
  for (const float number : numbers) found |= number < std::numeric_limits<float>::infinity() ? 0 : 1;
  return found != 0;
}

}  // namespace

absl::Status EvalGraph::Compile(CompileOptions options, const RuntimeOptions& runtime, Parameters* parameters) {
  options_ = std::move(options);
  options_.mode = kEval;
  options_.weights = runtime.weights.value_or(kF32);
  parameters_ = parameters;
  WEFT_ASSIGN_OR_RETURN(Graph graph, weft::Compile(tape, options_));
  runner_.emplace(std::move(graph), parameters, RunnerOptions{.threads = static_cast<int>(runtime.threads)});
  return runner_->status();
}

absl::StatusOr<Outputs> EvalGraph::Run(absl::Span<const FeedPair> feeds) {
  WEFT_ASSIGN_OR_RETURN(const Outputs out, runner_->Run(feeds));
  for (const Var var : options_.fetch) {
    const Tensor value = out[var];
    if (value.type.dtype != kF32 || !HasOverflow(value.span<const float>())) continue;
    WEFT_ASSIGN_OR_RETURN(Graph graph, weft::Compile(tape, options_));
    Runner check(std::move(graph), parameters_, {.threads = 1, .check_nan = true});
    WEFT_RETURN_IF_ERROR(check.Run(feeds).status());
    const std::string& first = check.first_nan();
    return absl::FailedPreconditionError(
        absl::StrCat("the model's results are not finite, because its weights are too large",
                     first.empty() ? "" : absl::StrCat("; the first NaN is from ", first)));
  }
  return out;
}

}  // namespace weft
