// Compile turns the program recorded on a tape into a Graph that a Runner can run.
//
//   absl::StatusOr<Graph> train = Compile(tape, {.fetch = {loss}, .update = {step}});
//   absl::StatusOr<Graph> faster = Compile(tape, {.fetch = {loss}, .update = {step}, .precision = kBF16});
//   absl::StatusOr<Graph> validate = Compile(tape, {.fetch = {loss}, .mode = kEval});
#ifndef WEFT_GRAPH_COMPILE_COMPILE_H_
#define WEFT_GRAPH_COMPILE_COMPILE_H_

#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "weft/core/program.h"
#include "weft/core/tape.h"
#include "weft/graph/compile/cost.h"
#include "weft/graph/graph.h"
#include "weft/ops/product/matmul.h"

namespace weft {

enum class Mode : uint8_t { kTrain, kEval };  // kEval: without dropout
inline constexpr Mode kTrain = Mode::kTrain, kEval = Mode::kEval;

// These passes only make a graph faster or smaller, so CompileOptions::without can leave them out for comparisons.
// kFold, kAdvanceWrites and kFuse change no bit of any result. The other passes may change how results are rounded.
enum class Pass : uint8_t {
  kShare,          // equal nodes become one
  kRaise,          // patterns of elementary ops become ops with kernels and gradients of their own
  kScatterRows,    // an embedding's gradient is added to another gradient of the table in place
  kFold,           // small values that depend only on constants are computed at compile time
  kFoldCasts,      // in bf16, casts that no op needs are removed
  kStoreWeights,   // products of few rows, and weights in CompileOptions::weights, get an op of their own
  kPack,           // weights of products of many rows are copied once per execution, to the order that kernels read
  kAdvanceWrites,  // updates move up to where their gradients are computed
  kFuse,           // neighbouring nodes run together, tile by tile, while their values are in cache
};
// Names of the passes for tests and tools, indexed by Pass.
inline constexpr const char* kPassNames[] = {"share",         "raise", "scatter-rows",   "fold", "casts",
                                             "store-weights", "pack",  "advance-writes", "fuse"};
inline constexpr int kPassCount = std::size(kPassNames);

using PassSet = std::set<Pass>;

struct CompileOptions {
  VarList fetch;   // the values that Run returns
  VarList update;  // updates of parameters, or update groups, that Run makes
  Mode mode = kTrain;
  // kF32: all ops compute in the recorded dtypes. kBF16: products take f32 inputs as bf16, and ops that move or map
  // bf16 values stay in bf16 (see Autocast in core/op.h). Weights, optimizers (but see UpdateOptions::precision),
  // norms' statistics, softmax, losses and sums stay in f32. Values that are fetched, written or differentiated by keep
  // the recorded dtypes.
  DType precision = kF32;
  // The dtype in which weights are stored: f32, bf16, f16, or a block format (core/block_formats.h). Parameters::Set
  // and Create convert to it. Weights that a graph differentiates, updates, or reads other than by products and
  // embeddings stay in f32. So do those with an axis below 64. If ParameterSpec::least of a weight is more precise than
  // `weights`, the weight is stored as `least` (HeldDType).
  DType weights = kF32;
  // In mode kEval, products of at most this many rows read their weights as they are stored, and the bits of a row do
  // not depend on other rows. Products of more rows pack the weights or multiply them as matrices, which is faster,
  // unless FastWithManyRows() is true for the weight's dtype.
  int64_t few_rows = kFewRows;
  PassSet without;  // passes to leave out, such as {Pass::kRaise, Pass::kFuse}
  // The target duration of a tile, in seconds by the cost model; finite and above 0. Another duration gives another
  // number of tasks. It changes no bit of a product.
  double tile_seconds = kTileSeconds;
  // Maximum size in bytes of the arena, which holds the values that kernels compute, fetched ones included; 0: no
  // limit. If the values need more, some are computed twice, which changes no bit. If that is not enough, Compile
  // returns ResourceExhausted, and the message gives the smallest budget that was found to suffice.
  size_t memory_budget = 0;
  // Whether kernels may overwrite the bytes of messages. This saves memory, but kernels then wait for other ranks. If
  // the memory budget is too small otherwise, kernels overwrite them in any case.
  bool reuse_messages = false;
  // If set, changes the program after all passes that choose ops. It may add messages, and must keep the program
  // correct: `roots` has the fetched values, then the updates. distributed/weight_gathers.h has such a function.
  std::function<absl::Status(Program* program, std::vector<ValueId>* roots)> distribute = {};
  // By name, the dtypes in which these weights are stored in place of `weights`, whatever ParameterSpec::least says. So
  // weights of different formats stay as a file has them.
  std::map<std::string, DType> stored;
};

// Compiles the tape's program to a graph that computes `fetch`, makes `update`, and does nothing else. If the tape has
// a recording error, returns that error. If options are unusable, returns InvalidArgument.
absl::StatusOr<Graph> Compile(const Tape& tape, const CompileOptions& options);

}  // namespace weft

#endif  // WEFT_GRAPH_COMPILE_COMPILE_H_
