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
  std::vector<Explanation> explanations;  // what was raised, and what was not and why
};

absl::Status Typecheck(Rewrite& rewrite);        // every node's types are what its shape rule gives
absl::Status ShareCommon(Rewrite& rewrite);      // nodes of equal op, attributes and inputs become one
absl::Status DropDead(Rewrite& rewrite);         // what no root needs goes, and ids become dense
absl::Status Raise(Rewrite& rewrite);            // patterns become ops with kernels and gradients of their own
absl::Status RaiseAttention(Rewrite& rewrite);   // softmax(q kᵀ) v
absl::Status ApplyAutocast(Rewrite& rewrite);    // in bf16, values get the dtypes that ops compute best with
absl::Status ExpandGradients(Rewrite& rewrite);  // gradient nodes become ordinary ops; mode kEval takes effect
absl::Status FoldConstants(Rewrite& rewrite);    // small values that depend on constants only are computed
absl::Status FoldCasts(Rewrite& rewrite);        // in bf16, casts that undo each other go, or join products
absl::Status OrderWrites(Rewrite& rewrite);      // what reads a state's old version later than its write reads a copy

}  // namespace weft

#endif  // WEFT_GRAPH_PASSES_PASSES_H_
