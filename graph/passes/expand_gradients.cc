#include "weft/core/tape.h"
#include "weft/graph/gradient.h"
#include "weft/graph/passes/passes.h"

namespace weft {

// Records the program again, node by node. What a gradient node stands for is recorded in its place, on nodes that have
// already been expanded: so gradients of gradients expand inside out.
// Rewrite dropout(x) to x, and whatever else has a spelling for mode kEval, before it is differentiated.
absl::Status ExpandGradients(Rewrite& rewrite) {
  const Program& program = rewrite.program;
  Tape tape(program);
  std::vector<Var> recorded(program.values.size());
  for (const Node& node : program.nodes) {
    VarList inputs;
    for (ValueId in : node.inputs) inputs.push_back(recorded[static_cast<uint32_t>(in)]);
    tape.SetScope(node.scope);
    VarList outputs;
    if (node.op == &kGradientOp) {
      outputs = Differentiate(inputs[0], VarSpan(inputs).subspan(1));
    } else if (rewrite.mode == kEval && node.op->in_eval != nullptr) {
      outputs = node.op->in_eval(node.attrs, inputs);
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
