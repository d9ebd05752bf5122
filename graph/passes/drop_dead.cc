#include "weft/graph/passes/passes.h"

namespace weft {

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
  uint32_t nodes = 0, values = 0;
  for (size_t n = 0; n < program.nodes.size(); ++n) {
    if (!live[n]) continue;
    Node node = std::move(program.nodes[n]);
    for (ValueId& in : node.inputs) rename(in);
    const ValueId first{values};
    for (uint32_t i = 0; i < node.output_count; ++i) {
      renamed[static_cast<uint32_t>(node.output(i))] = ValueId{values};
      program.values[values++] = {program.value(node.output(i)).type, NodeId{nodes}};
    }
    node.first_output = first;
    program.nodes[nodes++] = std::move(node);
  }
  program.nodes.resize(nodes);
  program.values.resize(values);
  for (ValueId& root : rewrite.roots) rename(root);
  return absl::OkStatus();
}

}  // namespace weft
