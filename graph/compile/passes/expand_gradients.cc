// This pass replaces each gradient node by the ops that compute the gradients. Earlier nodes have been expanded
// already, so gradients of gradients expand from the inside out. Mode kEval takes effect here, before ops are
// differentiated.
#include "weft/base/status.h"
#include "weft/graph/compile/gradient.h"
#include "weft/graph/compile/passes/passes.h"
#include "weft/graph/compile/storage.h"

namespace weft {

// Rewrite gradient(loss, x) to the ops that compute it
// Rewrite dropout(x) to x in mode kEval, and any other op with OpDef::in_eval to the result of that function
// If a gradient is taken by the output of such an op, the output becomes copy(x), because the gradient by x may differ.
absl::Status ExpandGradients(Rewrite& rewrite) {
  const Uses uses(rewrite);
  Replay replay(rewrite);
  WEFT_RETURN_IF_ERROR(replay.Record([&](const Node& node) -> VarList {
    const bool in_eval = rewrite.options.mode == kEval && node.op->in_eval != nullptr;
    if (node.op != &kGradientOp && !in_eval) return {};
    const VarList inputs = replay.Now(node.inputs);
    if (node.op == &kGradientOp) {
      return Differentiate(inputs[0], VarSpan(inputs).subspan(1), NodeId{0}, node.attrs.as<GradientAttrs>().partial);
    }
    VarList outputs = node.op->in_eval(node.attrs, inputs);
    for (uint32_t i = 0; i < node.output_count; ++i) {
      if (uses.differentiated_by(node.output(i))) outputs[i] = Record(kCopyOp, {outputs[i]});
    }
    return outputs;
  }));
  replay.Finish();
  return absl::OkStatus();
}

}  // namespace weft
