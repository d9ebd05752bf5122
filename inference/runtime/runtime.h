// What all models in inference share: the options of their executions, checks of the tokens that they read, and the
// graphs that are executed.
//
//   struct Logits : EvalGraph {
//     Var tokens, logits;
//   };
//   Logits graph;
//   ...  // records graph.tokens and graph.logits on graph.tape
//   WEFT_RETURN_IF_ERROR(graph.Compile({.fetch = {graph.logits}}, runtime, &parameters));
//   WEFT_ASSIGN_OR_RETURN(const Outputs out, graph.Run({{graph.tokens, ids}}));
#ifndef WEFT_INFERENCE_RUNTIME_RUNTIME_H_
#define WEFT_INFERENCE_RUNTIME_RUNTIME_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weft/base/status.h"
#include "weft/core/dtype.h"
#include "weft/core/parameters.h"
#include "weft/core/tape.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/run/runner.h"

namespace weft {

// How a model is executed.
struct RuntimeOptions {
  int64_t batch = 32;   // maximum number of texts, lines, pictures or windows in one execution
  int64_t threads = 0;  // 0: one for each core
  // The dtype in which weights are held (CompileOptions::weights). Unset: that which each weight has in the model's
  // file. Weights that come from no file are then held in f32.
  std::optional<DType> weights = std::nullopt;
};

// Returns InvalidArgument, such as "WHOSE has no tokens", unless `tokens` has 1 to `context` elements, and all are from
// 0 to `vocabulary` - 1.
absl::Status CheckTokens(absl::string_view whose, absl::Span<const int32_t> tokens, int64_t context,
                         int64_t vocabulary);

// Ensures that `ids` and `special` special tokens together fit `context`. If they do not, drops tokens from the end of
// `ids` if `truncate` is set; otherwise returns InvalidArgument with both lengths.
absl::Status FitContext(size_t special, int64_t context, bool truncate, std::vector<int32_t>* ids);

// An EvalGraph runs what its tape recorded in mode kEval, so without dropout. It refuses results that are NaN or
// +infinity.
class EvalGraph {
 public:
  // Compiles the tape with `options`, the mode kEval and the weights of `runtime`, or else the dtypes of the weights
  // that `parameters` has or was given (Parameters::Provide). Adds the graph's missing weights and states to
  // `parameters`, which must outlive the graph.
  absl::Status Compile(CompileOptions options, const RuntimeOptions& runtime, Parameters* parameters);

  // Runs the graph, as Runner::Run does. Returns FailedPrecondition if a fetched value of f32 is NaN or infinity,
  // because large weights overflowed. The error names the first op that made a NaN, which another execution finds.
  absl::StatusOr<Outputs> Run(absl::Span<const FeedPair> feeds);

  Tape tape;

 private:
  CompileOptions options_;
  Parameters* parameters_ = nullptr;
  std::optional<Runner> runner_;
};

// Rounds `n` up to 1, 2, 4, 8, ... times `step`, so that few graphs serve all sizes. `finer`: also to 3, 6, 12, ...
// times `step`, for graphs whose padding costs more than compiling more graphs.
int64_t GraphSize(int64_t n, int64_t step = 1, bool finer = false);

// The compiled graphs of one model, by their sizes. A graph is compiled when it is first needed. Texts of ever new
// sizes would fill the memory, so of many graphs, the one that was not needed for the longest time makes room for the
// next one.
template <class Sizes, class Graph>
class GraphCache {
 public:
  // Returns the graph for `sizes`, which lives until the next call. If there is none yet, its function
  // Record(sizes, model...) records and compiles it.
  template <class... Model>
  absl::StatusOr<Graph*> Get(const Sizes& sizes, Model&&... model) {
    constexpr size_t kMany = 100;
    if (graphs_.size() >= kMany && !graphs_.contains(sizes)) {
      graphs_.erase(absl::c_min_element(graphs_, [](auto& a, auto& b) { return a.second.used < b.second.used; }));
    }
    Entry& entry = graphs_[sizes];
    if (entry.graph == nullptr) {
      auto made = std::make_unique<Graph>();
      WEFT_RETURN_IF_ERROR(made->Record(sizes, model...));
      entry.graph = std::move(made);
    }
    entry.used = ++calls_;
    return entry.graph.get();
  }

 private:
  struct Entry {
    std::unique_ptr<Graph> graph;
    uint64_t used = 0;  // the number of the last call that needed it
  };
  std::map<Sizes, Entry> graphs_;
  uint64_t calls_ = 0;
};

}  // namespace weft

#endif  // WEFT_INFERENCE_RUNTIME_RUNTIME_H_
