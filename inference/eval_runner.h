// An EvalRunner runs a model's graph in mode kEval, and refuses results that are NaN or +infinity.
//
//   WEFT_ASSIGN_OR_RETURN(const auto runner,
//                         EvalRunner::Create(tape, {.fetch = {logits}}, &parameters, /*threads=*/0));
//   WEFT_ASSIGN_OR_RETURN(const Outputs out, runner->Run({{tokens, ids}}));
#ifndef WEFT_INFERENCE_EVAL_RUNNER_H_
#define WEFT_INFERENCE_EVAL_RUNNER_H_

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/core/parameters.h"
#include "weft/core/tape.h"
#include "weft/graph/compile.h"
#include "weft/graph/runner.h"

namespace weft {

class EvalRunner {
 public:
  // Compiles `tape` with `options`, but in mode kEval, so without dropout. Adds the graph's missing weights and states
  // to `parameters`. `tape` and `parameters` must outlive the runner.
  static absl::StatusOr<std::unique_ptr<EvalRunner>> Create(const Tape& tape, CompileOptions options,
                                                            Parameters* parameters, int64_t threads);

  // Runs the graph, as Runner::Run does. Returns FailedPrecondition if a fetched value of f32 is NaN or infinity,
  // because large weights overflowed. The error names the first op that made a NaN, which another execution finds.
  absl::StatusOr<Outputs> Run(absl::Span<const FeedPair> feeds);
  absl::StatusOr<Outputs> Run(std::initializer_list<FeedPair> feeds) {
    return Run(absl::MakeConstSpan(feeds.begin(), feeds.size()));
  }

 private:
  EvalRunner(const Tape& tape, CompileOptions options, Parameters* parameters)
      : tape_(tape), options_(std::move(options)), parameters_(parameters) {}

  const Tape& tape_;
  const CompileOptions options_;
  Parameters* const parameters_;
  std::optional<Runner> runner_;
};

}  // namespace weft

#endif  // WEFT_INFERENCE_EVAL_RUNNER_H_
