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
#include "weft/core/dtype.h"
#include "weft/lab/real_graphs.h"

namespace weft {

struct GraphChoice {
  std::string name = "gpt2";            // a name that RecordRealGraph takes, or the folder of a run
  std::optional<DType> precision = {};  // of products and of the values between them; unset: f32, or that of the run
  int64_t batch = 0;                    // examples in a batch; 0: as many as the graph or the run has
  int64_t step = 0;                     // of a run: the training step, counted from 0, whose batch is taken
  std::map<std::string, std::string> options = {};  // of a run: texts of options to change, by flag
};

// Returns the graph with its options and a batch. Of a run with several micro-batches, the graph is that of a step on
// one of them, and the batch is the first one. If `updates` is false, the graph has no gradients and no update. Returns
// InvalidArgument or NotFound if there is no such graph or run, if an option can't be changed, or if the run's data
// can't be read.
absl::StatusOr<std::unique_ptr<RealGraph>> RecordGraph(const GraphChoice& choice, bool updates = true);

}  // namespace weft

#endif  // WEFT_LAB_GRAPH_CHOICE_H_
