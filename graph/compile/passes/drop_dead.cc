// Dead-code elimination: drops nodes on which no root depends. Other passes leave such nodes behind. Then numbers the
// remaining values without gaps.
#include <utility>

#include "weft/graph/compile/passes/passes.h"

namespace weft {

// Rewrite x, dead(x), f(x) to x, f(x)
absl::Status DropDead(Rewrite& rewrite) {
  Program& program = rewrite.program;
  std::vector<bool> live(program.nodes.size(), false);
  const auto mark = [&](ValueId id) { live[program.value(id).producer] = true; };
  for (ValueId root : rewrite.roots) mark(root);
  for (size_t n = program.nodes.size(); n-- > 0;) {
    if (!live[n]) continue;
    for (ValueId in : program.nodes[n].inputs) mark(in);
  }

  Renames renames(program);
  std::vector<Value> values;
  values.reserve(program.values.size());
  uint32_t nodes = 0;
  for (size_t n = 0; n < program.nodes.size(); ++n) {
    if (!live[n]) continue;
    Node node = std::move(program.nodes[n]);
    renames.Apply(node);
    const ValueId first{static_cast<uint32_t>(values.size())};
    for (uint32_t i = 0; i < node.output_count; ++i) {
      const ValueId id = node.output(i);
      renames.Rename(id, ValueId{static_cast<uint32_t>(values.size())});
      values.push_back({program.value(id).type, NodeId{nodes}});
    }
    node.first_output = first;
    program.nodes[nodes++] = std::move(node);
  }
  program.nodes.resize(nodes);
  program.values = std::move(values);
  renames.Apply(rewrite.roots);
  return absl::OkStatus();
}

}  // namespace weft
