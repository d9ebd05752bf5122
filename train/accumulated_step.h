// A training step of several micro-batches; see train/training_step.h.
//
//   WEFT_ASSIGN_OR_RETURN(auto step, CreateAccumulatedStep(programs, optimizer, {.micro_batches = 4}, &parameters));
#ifndef WEFT_TRAIN_ACCUMULATED_STEP_H_
#define WEFT_TRAIN_ACCUMULATED_STEP_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/graph/compile.h"
#include "weft/graph/runner.h"
#include "weft/train/training_step.h"

namespace weft {

// Returns a step of `options.micro_batches` micro-batches. `programs` must not be empty. Their tapes and `parameters`
// must outlive the step.
absl::StatusOr<std::unique_ptr<TrainingStep>> CreateAccumulatedStep(absl::Span<const TrainingProgram> programs,
                                                                    const Optimizer& optimizer,
                                                                    const StepOptions& options, Parameters* parameters);

// The following functions are in training_step.cc, because both kinds of steps use them.

// Compiles `tape` with the precision and the memory budget of `options`, and returns a runner. Adds the bytes that the
// graph plans for its values to `planned_bytes`.
absl::StatusOr<std::unique_ptr<Runner>> StepRunner(const Tape& tape, CompileOptions compile, const StepOptions& options,
                                                   Parameters* parameters, uint64_t* planned_bytes);
// Computes `values` once on one thread. Returns the first op that makes a NaN, or "" if none is found.
std::string FirstNan(const Tape& tape, const VarList& values, absl::Span<const FeedPair> feeds,
                     const StepOptions& options, Parameters* parameters);

}  // namespace weft

#endif  // WEFT_TRAIN_ACCUMULATED_STEP_H_
