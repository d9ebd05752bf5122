// This table gives the order of the passes. Patterns are raised before gradients are expanded, so that the raised ops'
// own gradient rules are used. Ops without kernels are lowered after gradients are expanded. Passes that depend on the
// order of nodes come last.
#include "weft/graph/compile/passes/passes.h"

#include "absl/strings/str_cat.h"

namespace weft {
namespace {

absl::Status ShareAll(Rewrite& rewrite) { return ShareCommon(rewrite); }

absl::Status Distribute(Rewrite& rewrite) {
  if (!rewrite.options.distribute) return absl::OkStatus();
  return rewrite.options.distribute(&rewrite.program, &rewrite.roots);
}

}  // namespace

absl::Span<const PassRow> Passes() {
  static constexpr PassRow kPasses[] = {
      {"typecheck", Typecheck},
      {"share common", ShareAll, Pass::kShare},
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
      {"share common", ShareAll, Pass::kShare},
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

// Finds programs that could not have been recorded, which a faulty pass may leave.
absl::Status Typecheck(Rewrite& rewrite) {
  const Program& program = rewrite.program;
  for (uint32_t n = 0; n < program.nodes.size(); ++n) {
    const Node& node = program.nodes[n];
    for (ValueId in : node.inputs) {
      if (program.value(in).producer < NodeId{n}) continue;
      return absl::InternalError(absl::StrCat(node.op->name, ": reads a value that is made after it"));
    }
    const absl::StatusOr<Types> types = node.op->infer(node.attrs, program.InputTypes(node));
    if (!types.ok()) return absl::InternalError(absl::StrCat("after a pass, ", types.status().message()));
    if (*types == program.OutputTypes(node)) continue;
    return absl::InternalError(absl::StrCat(node.op->name, ": a pass left ", ToString(program.OutputTypes(node)),
                                            " where the shape rule gives ", ToString(*types)));
  }
  return absl::OkStatus();
}

}  // namespace weft
