#include "weft/inference/runtime/runtime.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "weft/core/block_formats.h"

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

absl::Status CheckTokens(absl::string_view whose, absl::Span<const int32_t> tokens, int64_t context,
                         int64_t vocabulary) {
  if (tokens.empty()) return InvalidArgument(whose, " has no tokens");
  if (static_cast<int64_t>(tokens.size()) > context) {
    return InvalidArgument(whose, " has ", tokens.size(), " tokens, but the model's context is ", context);
  }
  for (const int32_t token : tokens) {
    if (token >= 0 && token < vocabulary) continue;
    return InvalidArgument(whose, " has the token ", token, ", but the vocabulary ends at ", vocabulary - 1);
  }
  return absl::OkStatus();
}

absl::Status FitContext(size_t special, int64_t context, bool truncate, std::vector<int32_t>* ids) {
  const size_t room = static_cast<size_t>(context) - special;
  if (ids->size() > room && !truncate) {
    return InvalidArgument("it has ", ids->size() + special, " tokens, but the model's context is ", context,
                           "; truncate would cut it");
  }
  ids->resize(std::min(ids->size(), room));
  return absl::OkStatus();
}

int64_t GraphSize(int64_t n, int64_t step, bool finer) {
  int64_t size = step;
  while (size < n) size *= 2;
  const int64_t smaller = size / 4 * 3;
  return finer && smaller >= n && smaller % step == 0 ? smaller : size;
}

absl::Status EvalGraph::Compile(CompileOptions options, const RuntimeOptions& runtime, Parameters* parameters) {
  options_ = std::move(options);
  options_.mode = kEval;
  options_.weights = runtime.weights.value_or(kF32);
  for (const ParameterSpec& spec : tape.program().parameters) {
    if (runtime.weights.has_value()) break;
    const absl::StatusOr<Tensor> given = parameters->Find(spec.name);
    if (given.ok() && IsWeightFormat(given->type.dtype)) options_.stored[spec.name] = given->type.dtype;
  }
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
