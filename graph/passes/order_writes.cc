// Orders reads and writes of state. A write overwrites the bytes of the version before it. Readers that were recorded
// before the write run before it, because the schedule has edges for them; readers that were recorded after it need a
// copy, and this pass records the copies. It runs last, because it depends on the order of all nodes.
#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "weft/graph/passes/passes.h"
#include "weft/graph/storage.h"

namespace weft {

// Rewrite write(w), f(w) to c = copy(w), write(w), f(c)
// Rewrite write(w, w) to c = copy(w), write(w, c), where the write is not elementwise: it would read rows that it has
// already written
// Rewrite fetch(input) to fetch(copy(input)): the caller may change the fed array after the run
absl::Status OrderWrites(Rewrite& rewrite) {
  Program& program = rewrite.program;
  std::vector<ValueId> roots = StorageRoots(program);
  const auto root_of = [&](ValueId id) { return roots[id]; };
  absl::flat_hash_map<ValueId, uint32_t> written_at;  // old version, by storage root → the node that overwrites it
  for (uint32_t n = 0; n < program.nodes.size(); ++n) {
    for (int i = 0; i < program.nodes[n].op->writes; ++i) {
      written_at[root_of(program.nodes[n].inputs[i])] = n;
    }
  }

  absl::flat_hash_map<ValueId, ValueId> copies;     // old version, or a view of one → its copy
  std::vector<std::pair<uint32_t, Node>> inserted;  // (node, copy): the copy goes before the node
  const auto copy_before = [&](ValueId& id, uint32_t node) {
    const auto [copy, added] = copies.try_emplace(id, ValueId{static_cast<uint32_t>(program.values.size())});
    if (added) {
      const Value value = program.value(id);
      inserted.push_back({node,
                          {.op = &kCopyOp,
                           .inputs = {id},
                           .first_output = copy->second,
                           .output_count = 1,
                           .scope = program.node(value.producer).scope}});
      program.values.push_back({value.type, kNoNode});
      roots.push_back(copy->second);
    }
    id = copy->second;
  };
  const auto read_at = [&](ValueId& id, uint32_t reader) {
    const auto write = written_at.find(root_of(id));
    if (write != written_at.end() && reader > write->second) copy_before(id, write->second);
  };
  for (uint32_t n = 0; n < program.nodes.size(); ++n) {
    Node& node = program.nodes[n];
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const auto write = written_at.find(root_of(node.inputs[i]));
      const bool its_own = write != written_at.end() && write->second == n && static_cast<int>(i) >= node.op->writes;
      if (its_own && !IsElementwise(*node.op)) copy_before(node.inputs[i], n);
      read_at(node.inputs[i], n);
    }
    if (node.op->view) roots[node.output(0)] = root_of(node.inputs[0]);  // may be a copy's now
  }
  const uint32_t end = static_cast<uint32_t>(program.nodes.size());
  for (ValueId& root : rewrite.roots) {
    const NodeId producer = program.value(root_of(root)).producer;  // kNoNode for copies, so far
    if (producer != kNoNode && program.node(producer).op == &kInputOp) copy_before(root, end);
    read_at(root, end);
  }
  if (inserted.empty()) return absl::OkStatus();

  std::stable_sort(inserted.begin(), inserted.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Node> nodes;
  size_t next = 0;
  for (uint32_t n = 0; n <= end; ++n) {
    for (; next < inserted.size() && inserted[next].first == n; ++next)
      nodes.push_back(std::move(inserted[next].second));
    if (n < end) nodes.push_back(std::move(program.nodes[n]));
  }
  program.nodes = std::move(nodes);
  NumberProducers(&program);
  return absl::OkStatus();
}

}  // namespace weft
