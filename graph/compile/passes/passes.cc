// This table gives the order of the passes. Patterns are raised before gradients are expanded, so that the raised ops'
// own gradient rules are used. Ops without kernels are lowered after gradients are expanded. Passes that depend on the
// order of nodes come last.
#include "weft/graph/compile/passes/passes.h"

namespace weft {
namespace {

absl::Status Distribute(Rewrite& rewrite) {
  if (!rewrite.options.distribute) return absl::OkStatus();
  return rewrite.options.distribute(&rewrite.program, &rewrite.roots);
}

}  // namespace

absl::Span<const PassRow> Passes() {
  static constexpr PassRow kPasses[] = {
      {"typecheck", Typecheck},
      {"share common", ShareCommon, Pass::kShare},
      {"drop dead", DropDead},
      {"raise attention", RaiseAttention, Pass::kRaise},
      {"raise paged attention", RaisePagedAttention, Pass::kRaise},
      {"merge permutes", MergePermutes, Pass::kRaise},
      {"raise norms", RaiseNorms, Pass::kRaise},
      {"raise linear cross-entropy", RaiseLinearCrossEntropy, Pass::kRaise},
      {"autocast", ApplyAutocast},
      {"expand gradients", ExpandGradients},
      {"drop dead", DropDead},
      {"scatter rows", ScatterRows, Pass::kScatterRows},
      {"fold constants", FoldConstants, Pass::kFold},
      {"share common", ShareCommon, Pass::kShare},
      {"drop dead", DropDead},
      {"lower", Lower},
      {"fold casts", FoldCasts, Pass::kFoldCasts},
      {"store weights", StoreWeights, Pass::kStoreWeights},
      {"pack weights", PackWeights, Pass::kPack},
      {"advance writes", AdvanceWrites, Pass::kAdvanceWrites},
      {"distribute", Distribute},
      {"rematerialise", Rematerialise},
      {"order writes", OrderWrites},
      {"typecheck", Typecheck},
  };
  return kPasses;
}

}  // namespace weft
