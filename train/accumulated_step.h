// A training step of several micro-batches; see train/training_step.h.
//
//   WEFT_ASSIGN_OR_RETURN(auto step, PlanAccumulatedStep(programs, optimizer, {.micro_batches = 4}));
//   WEFT_RETURN_IF_ERROR(step->Allocate(&parameters));
#ifndef WEFT_TRAIN_ACCUMULATED_STEP_H_
#define WEFT_TRAIN_ACCUMULATED_STEP_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/graph/runner.h"
#include "weft/train/training_step.h"

namespace weft {

// Returns a step of `options.micro_batches` micro-batches, as TrainingStep::Plan does. `programs` must not be empty.
// Their tapes must outlive the step.
absl::StatusOr<std::unique_ptr<TrainingStep>> PlanAccumulatedStep(absl::Span<const TrainingProgram> programs,
                                                                  const Optimizer& optimizer,
                                                                  const StepOptions& options);

// The following function is in training_step.cc, because both kinds of steps use it.

// Computes `values` once on one thread. Returns the first op that makes a NaN, or "" if none is found.
std::string FirstNan(const Tape& tape, const VarList& values, absl::Span<const FeedPair> feeds,
                     const StepOptions& options, Parameters* parameters);

}  // namespace weft

#endif  // WEFT_TRAIN_ACCUMULATED_STEP_H_
