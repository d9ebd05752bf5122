// This pass adds the gradient of an embedding in place to another gradient of the same table. A table that is also the
// weight of a tied head has two gradients. The embedding's gradient is zero except in the rows of the batch's tokens,
// so writing all its rows would waste time.
#include <utility>

#include "weft/graph/passes/passes.h"
#include "weft/ops/all_ops.h"

namespace weft {

// Rewrite add(w, embedding_gradient(dy, ids)) to embedding_gradient_add(w, dy, ids), in either order, where w has the
// sum's type and only this sum reads the embedding's gradient
absl::Status ScatterRows(Rewrite& rewrite) {
  Program& program = rewrite.program;
  const Uses uses(rewrite);
  for (Node& node : program.nodes) {
    if (node.op != &kAdd) continue;
    const TensorType type = program.value(node.output(0)).type;
    for (const auto& [w, gradient] : {std::pair(0, 1), std::pair(1, 0)}) {
      const Node& embedding = program.producer(node.inputs[gradient]);
      if (embedding.op != &kEmbeddingGradient || !uses.OnlyOne(node.inputs[gradient]) ||
          program.value(node.inputs[w]).type != type) {
        continue;
      }
      node.inputs = {node.inputs[w], embedding.inputs[0], embedding.inputs[1]};
      node.op = &kEmbeddingGradientAdd;
      break;
    }
  }
  return absl::OkStatus();
}

}  // namespace weft
