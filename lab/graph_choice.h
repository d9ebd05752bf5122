// RecordGraph records the graph that a user names: one of lab/real_graphs.h, or a training step of a run, with the
// run's model, batch and data.
//
//   WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<RealGraph> graph, RecordGraph({.name = "runs/gpt-1", .batch = 4}));
//   absl::StatusOr<Graph> compiled = Compile(*graph->tape, graph->options);
#ifndef WEFT_LAB_GRAPH_CHOICE_H_
#define WEFT_LAB_GRAPH_CHOICE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "weft/core/dtype.h"
#include "weft/lab/real_graphs.h"
#include "weft/train/optimizer.h"
#include "weft/train/task.h"
#include "weft/train/training_step.h"

namespace weft {

struct GraphChoice {
  std::string name = "gpt2";            // a name that RecordRealGraph takes, or the folder of a run
  std::optional<DType> precision = {};  // of products and of the values between them; unset: f32, or that of the run
  int64_t batch = 0;                    // examples in a batch; 0: as many as the graph or the run has
  int64_t step = 0;                     // of a run: the training step, counted from 0, whose batch is taken
  std::map<std::string, std::string> options = {};  // of a run: texts of options to change, by flag
};

// The loss of a graph, without gradients and update, and a batch for it.
struct RecordedProgram {
  std::shared_ptr<const void> owner;  // owns the tape, and the memory to which the feeds refer
  TrainingProgram program;
  TrainingBatch batch;  // of program 0, which is `program`
  std::optional<Optimizer> optimizer;
  StepOptions step;  // the options of a run, except micro_batches: it is 1, and the caller sets it
};
// Records the loss of the graph or run that `choice` names. If a run has several micro-batches, the batch is the first
// micro-batch. Returns InvalidArgument if the graph is a forward pass.
absl::StatusOr<RecordedProgram> RecordProgram(const GraphChoice& choice);

// Reports whether `name` is that of a graph of lab/real_graphs.h.
bool IsRealGraph(absl::string_view name);

// Returns the graph with its options and feeds. Of a run with several micro-batches, the graph is that of a step on
// one of them. Returns InvalidArgument or NotFound if there is no such graph or run, if an option can't be changed, or
// if the run's data can't be read.
absl::StatusOr<std::unique_ptr<RealGraph>> RecordGraph(const GraphChoice& choice);

}  // namespace weft

#endif  // WEFT_LAB_GRAPH_CHOICE_H_
