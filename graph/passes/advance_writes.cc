#include <algorithm>
#include <numeric>

#include "absl/container/flat_hash_map.h"
#include "weft/graph/passes/passes.h"
#include "weft/graph/storage.h"

namespace weft {
namespace {

constexpr size_t kSmall = 4096;  // bytes of values that may wait for a write

// Whether a node goes to where it can run first: a write, what it reads that takes no bytes of the plan, and the little
// that stands between a gradient and its update.
bool Advances(const Program& program, const Node& node) {
  if (node.op->writes > 0 || node.op == &kParameterOp || node.op == &kInputOp || node.op == &kConstantOp) return true;
  return Shrinks(program, node, kSmall);
}

}  // namespace

// The memory plan goes by the order of nodes, and updates are recorded after all gradients.
// Rewrite dw, ..., write(w, dw) to dw, write(w, dw), ..., but not across a reader of w, which would then need a copy.
absl::Status AdvanceWrites(Rewrite& rewrite) {
  Program& program = rewrite.program;
  const uint32_t count = static_cast<uint32_t>(program.nodes.size());
  const std::vector<ValueId> roots = StorageRoots(program);
  const auto root = [&](ValueId id) { return static_cast<uint32_t>(roots[static_cast<size_t>(id)]); };
  absl::flat_hash_map<uint32_t, uint32_t> last_reader;  // an old version → the place of the last node before its write
  for (const Node& node : program.nodes) {
    for (int i = 0; i < node.op->writes; ++i) {
      last_reader[root(node.inputs[i])] = 0;
    }
  }
  if (last_reader.empty()) return absl::OkStatus();

  std::vector<uint32_t> place(count);  // after the node that had this number
  for (uint32_t n = 0; n < count; ++n) {
    const Node& node = program.nodes[n];
    place[n] = n;
    if (Advances(program, node)) {
      place[n] = 0;
      for (ValueId in : node.inputs) {
        place[n] = std::max(place[n], place[static_cast<uint32_t>(program.value(in).producer)]);
      }
      for (int i = 0; i < node.op->writes; ++i) {
        place[n] = std::max(place[n], last_reader[root(node.inputs[i])]);
      }
    }
    for (ValueId in : node.inputs) {
      const auto reader = last_reader.find(root(in));
      if (reader != last_reader.end()) reader->second = std::max(reader->second, place[n]);
    }
  }

  std::vector<uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return place[a] < place[b]; });
  std::vector<Node> nodes;
  for (uint32_t n : order) nodes.push_back(std::move(program.nodes[n]));
  program.nodes = std::move(nodes);
  NumberProducers(&program);
  return absl::OkStatus();
}

}  // namespace weft
