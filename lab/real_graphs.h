// RecordGraph records the graph that a user names: a training step of a run, with the run's model, batch and data, or a
// real graph. Real graphs are named training steps and one forward pass. The scheduling commands and benchmarks run,
// measure and draw them:
//
//   gpt2, bert, babygpt, charcpu, minilm-forward   the BenchModels
//   transformer   the base model of the encoder-decoder Transformer, on 8 pairs of 64 tokens
//   towers        8 independent chains of products; one is far deeper, so starting it late ends the step late
//   lstm          an LSTM unrolled over 64 tokens, with attention over its outputs
//   encoder       a Transformer block of the LSTM's width on the same tokens, to compare the parallelism of both
//
// One more graph is only for predictions, because it takes long to run:
//
//   transformer-big   the published big encoder-decoder Transformer: 6 + 6 layers of width 1024, feed-forward layers of
//                     width 4096, 16 heads, one table of 37,000 tokens; on 8 pairs of 64 tokens
//
//   WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<RealGraph> graph, RecordGraph({.name = "runs/gpt-1", .batch = 4}));
//   absl::StatusOr<Graph> compiled = Compile(*graph->tape, graph->options);
//
// BenchModels are the models that benchmarks train or run by themselves. bench/peers/ has the same models for PyTorch.
#ifndef WEFT_LAB_REAL_GRAPHS_H_
#define WEFT_LAB_REAL_GRAPHS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weft/core/dtype.h"
#include "weft/core/tape.h"
#include "weft/graph/compile/compile.h"
#include "weft/train/optimize/optimizer.h"
#include "weft/train/step/task.h"
#include "weft/train/step/training_step.h"

namespace weft {

struct BenchModel {
  const char* name;
  int64_t vocabulary, context, layers, heads, width;
  int64_t batch, length;  // as in docs/performance.md
  bool causal = true;
  bool trains = true;  // false: a step is only the forward pass of a BERT-style encoder
  int64_t window = 0;  // a position sees the positions at a distance below `window`; 0: all
};

// The models gpt2, bert, babygpt and charcpu have pre-norm blocks, GELU's tanh form, a tied head and no dropout. One
// product computes queries, keys and values. All but bert are causal. minilm-forward has six post-norm layers of
// MiniLM's sizes with GELU's erf form, and no head.
absl::Span<const BenchModel> BenchModels();
const BenchModel* FindBenchModel(absl::string_view name);  // null if there is no such model

struct RecordedModel {
  Var tokens;   // i32 [B, T]
  Var targets;  // i32 [B, T]; null if the model is not trained
  Var result;   // the loss [], or the encoder's last layer [B, T, C]
};

// Returns `count` random tokens in 0 .. below - 1, drawn from `stream`. Equal arguments give equal tokens in every
// program.
std::vector<int32_t> RandomTokens(int64_t count, int64_t below, uint32_t stream);

// Records on `tape` the loss of a model or, if the model is not trained, a forward pass. If `length` exceeds the
// model's context, the context grows to `length`.
RecordedModel RecordModel(Tape* tape, const BenchModel& model, int64_t batch, int64_t length);
// Returns the optimizer of a training step: AdamW with gradients clipped at norm 1.
Optimizer BenchOptimizer();

// A step to measure, to print or to simulate: recorded on a tape, with a batch for it.
struct RealGraph {
  std::shared_ptr<const void> owner;  // of the tape, and of memory to which the feeds of `batch` refer
  Tape* tape = nullptr;
  Var loss;                            // null if the graph is a forward pass
  TrainingBatch batch;                 // random tokens or a run's data; with an update, also a small learning rate
  std::optional<Optimizer> optimizer;  // empty if the graph is a forward pass
  StepOptions step;                    // of a run, its options, except micro_batches: it is 1
  CompileOptions options;              // what the step fetches and updates; empty if no update was recorded
};

struct GraphChoice {
  std::string name = "gpt2";            // of a real graph, or the folder of a run
  std::optional<DType> precision = {};  // of products and of the values between them; unset: f32, or that of the run
  int64_t batch = 0;                    // examples in a batch; 0: as many as the graph or the run has
  int64_t step = 0;                     // of a run: the training step, counted from 0, whose batch is taken
  std::map<std::string, std::string> options = {};  // of a run: texts of options to change, by flag
};

// Records the graph with its options and a batch. Of a run with several micro-batches, the graph is that of a step on
// one of them, and the batch is the first one. If `updates` is false, the graph has no gradients and no update. Returns
// InvalidArgument or NotFound if there is no such graph or run, if an option can't be changed, if the run's data can't
// be read, or if `batch` changes a real graph that is no BenchModel.
absl::StatusOr<std::unique_ptr<RealGraph>> RecordGraph(const GraphChoice& choice, bool updates = true);

std::vector<std::string> RealGraphNames();
// Returns the names of the graphs that calibration measures. Of these, gpt2, bert and babygpt are cut to two layers
// with nodes of full size. The others are in RealGraphNames(), too.
std::vector<std::string> CalibrationGraphNames();

}  // namespace weft

#endif  // WEFT_LAB_REAL_GRAPHS_H_
