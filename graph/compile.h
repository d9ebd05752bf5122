// Compile: from a tape to a graph that runs.
//
//   absl::StatusOr<Graph> train = Compile(tape, {.fetch = {loss}, .update = {step}});
//   absl::StatusOr<Graph> faster = Compile(tape, {.fetch = {loss}, .update = {step}, .precision = kBF16});
//   absl::StatusOr<Graph> validate = Compile(tape, {.fetch = {loss}, .mode = kEval});
#ifndef WEFT_GRAPH_COMPILE_H_
#define WEFT_GRAPH_COMPILE_H_

#include <cstdint>
#include <initializer_list>

#include "absl/status/statusor.h"
#include "weft/core/tape.h"
#include "weft/graph/cost.h"
#include "weft/graph/graph.h"

namespace weft {

enum class Mode : uint8_t { kTrain, kEval };  // kEval: no dropout
inline constexpr Mode kTrain = Mode::kTrain, kEval = Mode::kEval;

// The passes that only make a graph better: CompileOptions::without leaves them out, for comparing. kFold,
// kAdvanceWrites and kFuse change no bit; the others may round sums otherwise.
enum class Pass : uint8_t {
  kShare,        // equal nodes become one
  kRaise,        // patterns of elementary ops become ops with kernels and gradients of their own
  kScatterRows,  // an embedding's gradient is added to another one in place
  kFold,         // small values that depend on constants only are computed at once
  kFoldCasts,    // in bf16, rounding that no op needs is left out
  kPack,         // the weights of products of many rows, once a run, in the products' order, where the CPU gains by it
  kAdvanceWrites,  // updates move up to where their gradients are made
  kFuse,           // neighbours run together, tile by tile, while their values are in cache
};
inline constexpr int kPassCount = static_cast<int>(Pass::kFuse) + 1;
inline constexpr const char* kPassNames[kPassCount] = {"share", "raise", "scatter-rows",   "fold",
                                                       "casts", "pack",  "advance-writes", "fuse"};

class PassSet {
 public:
  constexpr PassSet(std::initializer_list<Pass> passes = {}) {
    for (Pass pass : passes) Add(pass);
  }
  constexpr void Add(Pass pass) { bits_ |= 1u << static_cast<int>(pass); }
  constexpr bool Has(Pass pass) const { return (bits_ >> static_cast<int>(pass) & 1u) != 0; }

 private:
  uint32_t bits_ = 0;
};

struct CompileOptions {
  VarList fetch;   // what Run returns
  VarList update;  // what Run does besides: updates of parameters, or groups of them
  Mode mode = kTrain;
  // kF32: everything as recorded. kBF16: products take bf16, and what moves or maps their results stays in it; weights,
  // optimizers, norms' statistics, softmax, losses and sums stay f32 (Autocast in core/op.h), and so does all that is
  // fetched, written or differentiated by.
  DType precision = kF32;
  PassSet without;  // for comparing
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
