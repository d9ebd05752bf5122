#include "weft/graph/passes/passes.h"

namespace weft {

std::vector<uint32_t> CountUses(const Rewrite& rewrite) {
  std::vector<uint32_t> uses(rewrite.program.values.size(), 0);
  for (const Node& node : rewrite.program.nodes) {
    for (ValueId in : node.inputs) ++uses[static_cast<uint32_t>(in)];
  }
  for (ValueId root : rewrite.roots) ++uses[static_cast<uint32_t>(root)];
  return uses;
}

absl::Status DropDead(Rewrite& rewrite) {
  Program& program = rewrite.program;
  std::vector<bool> live(program.nodes.size(), false);
  const auto mark = [&](ValueId id) { live[static_cast<uint32_t>(program.value(id).producer)] = true; };
  for (ValueId root : rewrite.roots) mark(root);
  for (size_t n = program.nodes.size(); n-- > 0;) {
    if (!live[n]) continue;
    for (ValueId in : program.nodes[n].inputs) mark(in);
  }

  std::vector<ValueId> renamed(program.values.size(), kNoValue);
  const auto rename = [&](ValueId& id) { id = renamed[static_cast<uint32_t>(id)]; };
  std::vector<Value> values;
  uint32_t nodes = 0;
  for (size_t n = 0; n < program.nodes.size(); ++n) {
    if (!live[n]) continue;
    Node node = std::move(program.nodes[n]);
    for (ValueId& in : node.inputs) rename(in);
    const ValueId first{static_cast<uint32_t>(values.size())};
    for (uint32_t i = 0; i < node.output_count; ++i) {
      renamed[static_cast<uint32_t>(node.output(i))] = ValueId{static_cast<uint32_t>(values.size())};
      values.push_back({program.value(node.output(i)).type, NodeId{nodes}});
    }
    node.first_output = first;
    program.nodes[nodes++] = std::move(node);
  }
  program.nodes.resize(nodes);
  program.values = std::move(values);
  for (ValueId& root : rewrite.roots) rename(root);
  return absl::OkStatus();
}

}  // namespace weft
