#include "weft/core/tape.h"
#include "weft/graph/gradient.h"
#include "weft/graph/passes/passes.h"
#include "weft/graph/storage.h"

namespace weft {

// Records the program again, node by node. What a gradient node stands for is recorded in its place, on nodes that have
// already been expanded: so gradients of gradients expand inside out.
// Rewrite dropout(x) to x, and whatever else has a spelling for mode kEval, before it is differentiated; to a copy of x
// where a gradient is taken by it, which is not the gradient by x.
absl::Status ExpandGradients(Rewrite& rewrite) {
  const Program& program = rewrite.program;
  Tape tape(program);
  std::vector<Var> recorded(program.values.size());
  std::vector<bool> differentiated_by(program.values.size(), false);
  for (const Node& node : program.nodes) {
    if (node.op != &kGradientOp) continue;
    for (size_t i = 1; i < node.inputs.size(); ++i) differentiated_by[static_cast<uint32_t>(node.inputs[i])] = true;
  }
  for (const Node& node : program.nodes) {
    VarList inputs;
    for (ValueId in : node.inputs) inputs.push_back(recorded[static_cast<uint32_t>(in)]);
    tape.SetScope(node.scope);
    VarList outputs;
    if (node.op == &kGradientOp) {
      outputs = Differentiate(inputs[0], VarSpan(inputs).subspan(1));
    } else if (rewrite.mode == kEval && node.op->in_eval != nullptr) {
      outputs = node.op->in_eval(node.attrs, inputs);
      for (uint32_t i = 0; i < node.output_count; ++i) {
        if (differentiated_by[static_cast<uint32_t>(node.output(i))]) outputs[i] = Record(kCopyOp, {outputs[i]});
      }
    } else {
      outputs = tape.Copy(program, node, inputs);
    }
    if (!tape.status().ok()) return tape.status();
    for (uint32_t i = 0; i < node.output_count; ++i) recorded[static_cast<uint32_t>(node.output(i))] = outputs[i];
  }
  for (ValueId& root : rewrite.roots) root = recorded[static_cast<uint32_t>(root)].id;
  rewrite.program = std::move(tape).TakeProgram();
  return absl::OkStatus();
}

}  // namespace weft
