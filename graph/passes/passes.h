// The passes of the compiler. Each rewrites a program in place; nodes stay in topological order.
#ifndef WEFT_GRAPH_PASSES_PASSES_H_
#define WEFT_GRAPH_PASSES_PASSES_H_

#include <vector>

#include "absl/status/status.h"
#include "weft/core/program.h"
#include "weft/graph/compile.h"

namespace weft {

struct Rewrite {
  Program program;
  std::vector<ValueId> roots;  // what must be there at the end: the fetched values, then the updates
  Mode mode = kTrain;
  DType precision = kF32;
  bool fuse = true;
  double tile_seconds = kTileSeconds;
  size_t memory_budget = 0;               // as in CompileOptions, and so are those above
  double recomputed_seconds = 0;          // what is computed twice takes, by the cost model
  std::vector<Explanation> explanations;  // what was raised, and what was not and why
};

absl::Status Typecheck(Rewrite& rewrite);       // every node's types are what its shape rule gives
absl::Status ShareCommon(Rewrite& rewrite);     // nodes of equal op, attributes and inputs become one
absl::Status DropDead(Rewrite& rewrite);        // what no root needs goes, and ids become dense
absl::Status Raise(Rewrite& rewrite);           // patterns become ops with kernels and gradients of their own
absl::Status RaiseAttention(Rewrite& rewrite);  // softmax(q kᵀ) v
absl::Status RaiseNorms(Rewrite& rewrite);      // (x - mean) / sqrt(variance + ε), x / sqrt(mean(x²) + ε)
absl::Status RaiseLinearCrossEntropy(Rewrite& rewrite);
absl::Status ApplyAutocast(Rewrite& rewrite);    // in bf16, values get the dtypes that ops compute best with
absl::Status ExpandGradients(Rewrite& rewrite);  // gradient nodes become ordinary ops; mode kEval takes effect
absl::Status ScatterRows(Rewrite& rewrite);      // an embedding's gradient is added to another one in place
absl::Status FoldConstants(Rewrite& rewrite);    // small values that depend on constants only are computed
absl::Status Lower(Rewrite& rewrite);            // ops without kernels become ordinary ones
absl::Status FoldCasts(Rewrite& rewrite);        // in bf16, casts that undo each other go, or join products
absl::Status PackWeights(Rewrite& rewrite);      // the weights of large products, once a run
absl::Status AdvanceWrites(Rewrite& rewrite);    // updates move up to where their gradients are made
absl::Status Rematerialise(Rewrite& rewrite);    // what a memory budget leaves no room for is computed twice
absl::Status OrderWrites(Rewrite& rewrite);      // what reads a state's old version later than its write reads a copy

// How many nodes and roots read each value.
std::vector<uint32_t> CountUses(const Rewrite& rewrite);
// Says of each value which node makes it, when nodes have moved.
void NumberProducers(Program* program);

}  // namespace weft

#endif  // WEFT_GRAPH_PASSES_PASSES_H_
