// EvalRunner compiles a tape in mode kEval and makes a runner of the graph.
#ifndef WEFT_INFERENCE_EVAL_RUNNER_H_
#define WEFT_INFERENCE_EVAL_RUNNER_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "weft/core/parameters.h"
#include "weft/core/status.h"
#include "weft/core/tape.h"
#include "weft/graph/compile.h"
#include "weft/graph/runner.h"

namespace weft {

// Compiles `tape` with `options`, but in mode kEval, so without dropout. Adds the graph's missing weights and states to
// `parameters`, which must outlive the runner.
inline absl::StatusOr<std::unique_ptr<Runner>> EvalRunner(const Tape& tape, CompileOptions options,
                                                          Parameters* parameters, int64_t threads) {
  options.mode = kEval;
  WEFT_ASSIGN_OR_RETURN(Graph graph, Compile(tape, options));
  auto runner =
      std::make_unique<Runner>(std::move(graph), parameters, RunnerOptions{.threads = static_cast<int>(threads)});
  WEFT_RETURN_IF_ERROR(runner->status());
  return runner;
}

}  // namespace weft

#endif  // WEFT_INFERENCE_EVAL_RUNNER_H_
