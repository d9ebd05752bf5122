// This pass orders reads and writes of state. A write overwrites the bytes of the previous version. Edges of the
// schedule make readers that were recorded before the write run before it. Readers that were recorded after the write
// read a copy, which this pass records. It is the last pass that changes the program, because it depends on the order
// of all nodes.
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "weft/base/status.h"
#include "weft/graph/compile/passes/passes.h"
#include "weft/graph/compile/storage.h"

namespace weft {

// Rewrite write(w), f(w) to c = copy(w), write(w), f(c)
// Rewrite write(w, w) to c = copy(w), write(w, c), where the write is not elementwise: it would read rows that it has
// already written
// Rewrite fetch(input) to fetch(copy(input)): the caller may change the fed array after Run
absl::Status OrderWrites(Rewrite& rewrite) {
  Program& program = rewrite.program;
  const uint32_t count = static_cast<uint32_t>(program.nodes.size());
  std::vector<ValueId> roots = StorageRoots(program);
  absl::flat_hash_map<ValueId, uint32_t> written_at;  // old version, by storage root → the node that overwrites it
  std::vector<uint32_t> position;                     // by node: odd, so that copies go between
  for (uint32_t n = 0; n < count; ++n) {
    position.push_back(2 * n + 1);
    for (int i = 0; i < program.nodes[n].op->writes; ++i) {
      if (written_at.try_emplace(roots[program.nodes[n].inputs[i]], n).second) continue;
      return InvalidArgument(program.nodes[n].op->name, ": the graph has two writes of one version of ",
                             ToString(program.value(program.nodes[n].inputs[i]).type), "; write its latest version");
    }
  }

  absl::flat_hash_map<ValueId, ValueId> copies;  // old version, or a view of one → its copy
  const auto copy_before = [&](uint32_t node, ValueId id) {
    const auto [copy, added] = copies.try_emplace(id);
    if (added) {
      const NodeId made = program.Append(kCopyOp, {}, {id}, {program.value(id).type}, program.producer(id).scope);
      copy->second = program.node(made).output(0);
      roots.push_back(copy->second);
      position.push_back(2 * node);
    }
    return copy->second;
  };
  for (uint32_t n = 0; n < count; ++n) {
    const OpDef& op = *program.nodes[n].op;
    for (size_t i = 0; i < program.nodes[n].inputs.size(); ++i) {
      const ValueId id = program.nodes[n].inputs[i];
      const auto write = written_at.find(roots[id]);
      if (write == written_at.end()) continue;
      const bool reads_what_it_writes = write->second == n && static_cast<int>(i) >= op.writes && !IsElementwise(op);
      if (write->second >= n && !reads_what_it_writes) continue;
      const ValueId copy = copy_before(write->second, id);
      program.nodes[n].inputs[i] = copy;
    }
    if (op.view) roots[program.nodes[n].output(0)] = roots[program.nodes[n].inputs[0]];  // may be a copy's now
  }
  for (ValueId& root : rewrite.roots) {
    const auto write = written_at.find(roots[root]);
    if (write != written_at.end()) {
      root = copy_before(write->second, root);
    } else if (program.producer(roots[root]).op == &kInputOp) {
      root = copy_before(count, root);
    }
  }
  if (program.nodes.size() > count) Reorder(&program, position);
  return absl::OkStatus();
}

}  // namespace weft
