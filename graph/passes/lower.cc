// Lowers ops without kernels: records in their place the ordinary ops that OpDef::lower gives. The pass runs after
// gradients are expanded, so that such an op can have its own gradient.
//
// One op is lowered together with its gradient. linear_cross_entropy computes its logits block by block and keeps none,
// so that its gradient has to compute them again: one more product with the whole vocabulary. If the nodes of both are
// recorded together, each block's logits serve the loss and the gradient. An op's definition sees only the op, so this
// pass looks for the gradient's node. In training this is nearly always possible: the gradient depends on `drow`, the
// weight of each row's loss, and `drow` follows from the targets alone.
#include <vector>

#include "absl/algorithm/container.h"
#include "weft/core/status.h"
#include "weft/graph/passes/passes.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/loss/linear_cross_entropy.h"

namespace weft {
namespace {

// Index of the input `drow` of linear_cross_entropy_gradient(x, w, t, drow [, bias]). Its other inputs are the same as
// of linear_cross_entropy(x, w, t [, bias]).
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
  // Records the nodes that `drow` depends on ahead of their turn, then the blocks in place of the loss and of its
  // gradient. Returns the loss, or nothing if there is no gradient, or if its `drow` depends on the loss.
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

  // Finds the nodes after the loss n that `drow`, an input of node g, depends on and that are not recorded yet. Returns
  // false if it depends on the loss, or on a node that must not move.
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
