#include <algorithm>
#include <vector>

#include "weft/core/tape.h"
#include "weft/graph/passes/passes.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/loss/linear_cross_entropy.h"

namespace weft {
namespace {

// Records the program again, node by node.
class Lowering {
 public:
  explicit Lowering(Rewrite& rewrite)
      : rewrite_(rewrite),
        program_(rewrite.program),
        tape_(rewrite.program),
        recorded_(rewrite.program.values.size()),
        done_(rewrite.program.nodes.size(), false) {
    for (uint32_t n = 0; n < program_.nodes.size(); ++n) {
      if (program_.nodes[n].op == &kLinearCrossEntropyGradient) gradients_.push_back(n);
    }
  }

  absl::Status Run() {
    for (uint32_t n = 0; n < program_.nodes.size(); ++n) {
      if (done_[n] || LossWithGradient(n)) continue;
      const Node& node = program_.nodes[n];
      tape_.SetScope(node.scope);
      Became(n, node.op->lower != nullptr ? node.op->lower(node.attrs, Now(node.inputs))
                                          : tape_.Copy(program_, node, Now(node.inputs)));
      if (!tape_.status().ok()) return tape_.status();
    }
    for (ValueId& root : rewrite_.roots) root = recorded_[static_cast<size_t>(root)].id;
    rewrite_.program = std::move(tape_).TakeProgram();
    return DropDead(rewrite_);
  }

 private:
  VarList Now(absl::Span<const ValueId> ids) const {
    VarList vars;
    for (ValueId id : ids) vars.push_back(recorded_[static_cast<size_t>(id)]);
    return vars;
  }

  void Became(uint32_t n, const VarList& outputs) {
    const Node& node = program_.nodes[n];
    for (uint32_t i = 0; i < node.output_count; ++i) recorded_[static_cast<size_t>(node.output(i))] = outputs[i];
    done_[n] = true;
  }

  // Rewrite linear_cross_entropy(x, w, t) and its gradient of drow, where drow does not depend on the loss, to blocks
  // of rows that give both, so that no logits are computed twice. False if node n is no such loss.
  bool LossWithGradient(uint32_t n) {
    const Node& loss = program_.nodes[n];
    if (loss.op != &kLinearCrossEntropy) return false;
    for (const uint32_t g : gradients_) {
      const Node& gradient = program_.nodes[g];
      std::vector<uint32_t> between;
      if (g < n || done_[g] || !IsGradientOf(gradient, loss) || !Between(n, g, &between)) continue;
      for (uint32_t b : between) Became(b, tape_.Copy(program_, program_.nodes[b], Now(program_.nodes[b].inputs)));
      tape_.SetScope(loss.scope);
      const LinearCrossEntropyParts parts = LinearCrossEntropyByBlocks(loss.attrs.as<LinearCrossEntropyAttrs>(),
                                                                       Now(loss.inputs), Now({gradient.inputs[3]})[0]);
      Became(n, {parts.row_loss});
      Became(g, {parts.dx, parts.dw, parts.dbias});
      return true;
    }
    return false;
  }

  bool IsGradientOf(const Node& node, const Node& loss) const {
    if (node.op != &kLinearCrossEntropyGradient || !node.op->attrs.equal(node.attrs, loss.attrs)) return false;
    auto inputs = node.inputs;
    inputs.erase(inputs.begin() + 3);
    return inputs == loss.inputs;
  }

  // The nodes after the loss n that drow, an input of node g, needs and that are not recorded yet. False if it needs
  // the loss, or what has to stay where it is.
  bool Between(uint32_t n, uint32_t g, std::vector<uint32_t>* nodes) const {
    std::vector<bool> seen(g - n, false);
    std::vector<ValueId> open = {program_.nodes[g].inputs[3]};
    while (!open.empty()) {
      const uint32_t producer = static_cast<uint32_t>(program_.value(open.back()).producer);
      open.pop_back();
      if (producer < n || done_[producer] || seen[producer - n]) continue;
      const Node& node = program_.nodes[producer];
      if (producer == n || node.op->writes > 0 || node.op->lower != nullptr) return false;
      seen[producer - n] = true;
      nodes->push_back(producer);
      open.insert(open.end(), node.inputs.begin(), node.inputs.end());
    }
    std::sort(nodes->begin(), nodes->end());
    return true;
  }

  Rewrite& rewrite_;
  const Program& program_;
  Tape tape_;
  std::vector<Var> recorded_;
  std::vector<bool> done_;           // by node
  std::vector<uint32_t> gradients_;  // nodes linear_cross_entropy_gradient
};

}  // namespace

// Rewrite op(x), where the op has ordinary nodes in place of a kernel, to those.
absl::Status Lower(Rewrite& rewrite) {
  const std::vector<Node>& nodes = rewrite.program.nodes;
  const auto lowers = [](const Node& node) { return node.op->lower != nullptr; };
  if (std::none_of(nodes.begin(), nodes.end(), lowers)) return absl::OkStatus();
  return Lowering(rewrite).Run();
}

}  // namespace weft
