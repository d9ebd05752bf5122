// This header declares the compiler's passes, and the list of them that Compile walks.
//
// A pass rewrites a program by small rules, each headed "// Rewrite a to b" in its file. Nodes stay in topological
// order. To add a pass, write its file, declare it here, and give it a row in passes.cc. If CompileOptions::without
// must be able to leave the pass out, add it to Pass (graph/compile/compile.h), too. rewriting.h has the tools of most
// passes. pattern.h has the tools of passes that recognise patterns.
#ifndef WEFT_GRAPH_COMPILE_PASSES_PASSES_H_
#define WEFT_GRAPH_COMPILE_PASSES_PASSES_H_

#include <optional>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/compile/passes/rewriting.h"

namespace weft {

struct PassRow {
  const char* name;  // for errors of the type checker
  absl::Status (*run)(Rewrite&);
  std::optional<Pass> optional;  // its name in CompileOptions::without; nullopt if the pass always runs
};
// Returns the passes in the order in which they run. A pass that runs more than once has a row for each time.
absl::Span<const PassRow> Passes();

// Checks that each node has the types that its shape rule gives, and that no node reads a value of a later node.
absl::Status Typecheck(Rewrite& rewrite);
// Merges nodes with equal op, attributes and inputs into one node. `only`: the op of these nodes; null: any op.
absl::Status ShareCommon(Rewrite& rewrite, const OpDef* only = nullptr);
// Drops the nodes that no root needs, and numbers values densely.
absl::Status DropDead(Rewrite& rewrite);
// Replaces softmax(q kᵀ) v by the op `attention`.
absl::Status RaiseAttention(Rewrite& rewrite);
absl::Status RaisePagedAttention(Rewrite& rewrite);
// Merges permutations of permutations.
absl::Status MergePermutes(Rewrite& rewrite);
// Replaces (x - mean) / sqrt(variance + ε) by `layer_norm`, and x / sqrt(mean(x²) + ε) by `rms_norm`.
absl::Status RaiseNorms(Rewrite& rewrite);
// Replaces the cross-entropy of a product by `linear_cross_entropy`.
absl::Status RaiseLinearCrossEntropy(Rewrite& rewrite);
// In precision bf16, inserts the casts that OpDef::autocast asks for.
absl::Status ApplyAutocast(Rewrite& rewrite);
// Replaces gradient nodes by ordinary ops, and applies mode kEval.
absl::Status ExpandGradients(Rewrite& rewrite);
// Adds an embedding's gradient in place to another gradient of the same table.
absl::Status ScatterRows(Rewrite& rewrite);
// Computes small values that depend on constants only.
absl::Status FoldConstants(Rewrite& rewrite);
// Replaces ops without kernels by ordinary ops.
absl::Status Lower(Rewrite& rewrite);
// In precision bf16, removes casts that undo each other, and lets products write f32.
absl::Status FoldCasts(Rewrite& rewrite);
// Stores weights in CompileOptions::weights, and gives products of few rows their own op.
absl::Status StoreWeights(Rewrite& rewrite);
// Packs the weights of large products once an execution.
absl::Status PackWeights(Rewrite& rewrite);
// Moves updates up to where their gradients are computed.
absl::Status AdvanceWrites(Rewrite& rewrite);
// If values would exceed the memory budget, computes some of them twice.
absl::Status Rematerialise(Rewrite& rewrite);
// Copies old versions of state that are read while or after they are overwritten, and inputs that are fetched.
absl::Status OrderWrites(Rewrite& rewrite);

}  // namespace weft

#endif  // WEFT_GRAPH_COMPILE_PASSES_PASSES_H_
