// Compile: from a tape to a graph that runs.
//
//   absl::StatusOr<Graph> train = Compile(tape, {.fetch = {loss}, .update = {step}});
//   absl::StatusOr<Graph> faster = Compile(tape, {.fetch = {loss}, .update = {step}, .precision = kBF16});
//   absl::StatusOr<Graph> validate = Compile(tape, {.fetch = {loss}, .mode = kEval});
#ifndef WEFT_GRAPH_COMPILE_H_
#define WEFT_GRAPH_COMPILE_H_

#include "absl/status/statusor.h"
#include "weft/core/tape.h"
#include "weft/graph/cost.h"
#include "weft/graph/graph.h"

namespace weft {

enum class Mode : uint8_t { kTrain, kEval };  // kEval: no dropout
inline constexpr Mode kTrain = Mode::kTrain, kEval = Mode::kEval;

struct CompileOptions {
  VarList fetch;   // what Run returns
  VarList update;  // what Run does besides: updates of parameters, or groups of them
  Mode mode = kTrain;
  // kF32: everything as recorded. kBF16: products take bf16, and what moves or maps their results stays in it; weights,
  // optimizers, norms' statistics, softmax, losses and sums stay f32 (Autocast in core/op.h), and so does all that is
  // fetched, written or differentiated by. Rounding to bf16 and back that no op needs is left out.
  DType precision = kF32;
  // Whether patterns of elementary ops become ops with kernels and gradients of their own. false is for comparing.
  bool raise = true;
  // Whether the weights of products of many rows are brought into the products' order once a run, where the CPU gains
  // by it. false is for comparing: sums are rounded otherwise.
  bool pack = true;
  // Whether neighbours run together, tile by tile, while their values are in cache. false gives the same bits, and is
  // for comparing.
  bool fuse = true;
  // How long a tile should take; finite and above 0. Another value cuts products elsewhere, and so gives other bits.
  double tile_seconds = kTileSeconds;
  // The most bytes that the values between inputs, parameters and outputs may take, as planned; 0: no limit. Where they
  // would take more, some are computed twice, with the same bits; ResourceExhausted, with the least, if that won't do.
  size_t memory_budget = 0;
};

// The tape's first recording error, if it has one. The roots of the graph are exactly `fetch` and `update`; what they
// don't need is left out.
absl::StatusOr<Graph> Compile(const Tape& tape, const CompileOptions& options);

}  // namespace weft

#endif  // WEFT_GRAPH_COMPILE_H_
