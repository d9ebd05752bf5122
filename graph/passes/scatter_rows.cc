#include <utility>

#include "weft/graph/passes/passes.h"
#include "weft/ops/all_ops.h"

namespace weft {

// A table that is an embedding and something else (the weight of a tied head) has a gradient that is a sum.
// Rewrite add(w, embedding_gradient(dy, ids)) to embedding_gradient_add(w, dy, ids), in either order, where w has the
// sum's type and nothing else reads the embedding's part.
absl::Status ScatterRows(Rewrite& rewrite) {
  Program& program = rewrite.program;
  std::vector<uint32_t> uses;  // of each value
  for (Node& node : program.nodes) {
    if (node.op != &kAdd) continue;
    if (uses.empty()) uses = CountUses(rewrite);
    const TensorType type = program.value(node.output(0)).type;
    for (const auto& [w, part] : {std::pair(0, 1), std::pair(1, 0)}) {
      const Node& embedding = program.producer(node.inputs[part]);
      if (embedding.op != &kEmbeddingGradient || uses[static_cast<uint32_t>(node.inputs[part])] != 1 ||
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
