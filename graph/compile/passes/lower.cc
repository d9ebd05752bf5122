// This pass replaces ops without kernels by the ordinary ops that OpDef::lower records. It runs after gradients are
// expanded, so that such an op can have its own gradient.
//
// linear_cross_entropy is lowered together with its gradient. The op computes its logits block by block and keeps none,
// so a separate gradient would compute all logits again. If both are recorded together, each block's logits serve the
// loss and the gradient. OpDef::lower sees only one node, so this pass looks for the gradient's node. Both can be
// recorded together unless the gradient's input `drow`, the factor of each row's loss, depends on the loss. In
// training, `drow` usually follows from the targets alone.
#include <vector>

#include "absl/algorithm/container.h"
#include "weft/base/status.h"
#include "weft/graph/compile/passes/passes.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/loss/linear_cross_entropy.h"

namespace weft {
namespace {

// Index of the input `drow` of linear_cross_entropy_gradient(x, w, t, drow [, bias]). The other inputs are those of
// linear_cross_entropy(x, w, t [, bias]).
constexpr int kRowGradientInput = 3;

bool IsGradientOf(const Node& node, const Node& loss) {
  if (!node.op->attrs.equal(node.attrs, loss.attrs)) return false;
  auto inputs = node.inputs;
  inputs.erase(inputs.begin() + kRowGradientInput);
  return inputs == loss.inputs;
}

class LossLowering {
 public:
  explicit LossLowering(Replay& replay) : replay_(replay), program_(replay.program()) {
    for (uint32_t n = 0; n < program_.nodes.size(); ++n) {
      if (program_.nodes[n].op == &kLinearCrossEntropyGradient) gradients_.push_back(n);
    }
  }

  // Rewrite linear_cross_entropy(x, w, t), ..., its gradient to blocks of rows that compute both
  // Records the nodes on which `drow` depends ahead of their turn, then the blocks in place of the loss and the
  // gradient. Returns the loss, or an empty list if there is no gradient that can be recorded here.
  VarList Record(const Node& loss) {
    const uint32_t n = program_.value(loss.output(0)).producer;
    for (const uint32_t g : gradients_) {
      const Node& gradient = program_.nodes[g];
      std::vector<uint32_t> between;
      if (g < n || Recorded(g) || !IsGradientOf(gradient, loss) || !Between(n, g, &between)) continue;
      for (uint32_t b : between) replay_.Replace(program_.nodes[b], replay_.Copy(program_.nodes[b]));
      replay_.tape().SetScope(loss.scope);
      const LinearCrossEntropyResult result =
          LinearCrossEntropyByBlocks(loss.attrs.as<LinearCrossEntropyAttrs>(), replay_.Now(loss.inputs),
                                     replay_.Now(gradient.inputs[kRowGradientInput]));
      replay_.Replace(gradient, {result.dx, result.dw, result.dbias});
      return {result.row_loss};
    }
    return {};
  }

 private:
  bool Recorded(uint32_t n) const { return static_cast<bool>(replay_.Now(program_.nodes[n].output(0))); }

  // Finds the nodes after the loss, node `n`, on which `drow` of the gradient, node `g`, depends. Omits nodes that are
  // recorded already. Returns false if `drow` depends on the loss, or on a node that must not move.
  bool Between(uint32_t n, uint32_t g, std::vector<uint32_t>* nodes) const {
    std::vector<bool> seen(g - n, false);
    std::vector<ValueId> open = {program_.nodes[g].inputs[kRowGradientInput]};
    while (!open.empty()) {
      const uint32_t producer = program_.value(open.back()).producer;
      open.pop_back();
      if (producer < n || Recorded(producer) || seen[producer - n]) continue;
      const Node& node = program_.nodes[producer];
      if (producer == n || node.op->writes > 0 || node.op->lower != nullptr) return false;
      seen[producer - n] = true;
      nodes->push_back(producer);
      open.insert(open.end(), node.inputs.begin(), node.inputs.end());
    }
    absl::c_sort(*nodes);
    return true;
  }

  Replay& replay_;
  const Program& program_;
  std::vector<uint32_t> gradients_;  // indices of the nodes linear_cross_entropy_gradient
};

}  // namespace

// Rewrite op(x) to the ops that OpDef::lower records
absl::Status Lower(Rewrite& rewrite) {
  const auto lowers = [](const Node& node) { return node.op->lower != nullptr; };
  if (absl::c_none_of(rewrite.program.nodes, lowers)) return absl::OkStatus();
  Replay replay(rewrite);
  LossLowering losses(replay);
  WEFT_RETURN_IF_ERROR(replay.Record([&](const Node& node) -> VarList {
    if (node.op->lower == nullptr) return {};
    if (node.op == &kLinearCrossEntropy) {
      VarList loss = losses.Record(node);
      if (!loss.empty()) return loss;
    }
    return node.op->lower(node.attrs, replay.Now(node.inputs));
  }));
  replay.Finish();
  return DropDead(rewrite);
}

}  // namespace weft
