#include <algorithm>
#include <numeric>

#include "absl/container/flat_hash_map.h"
#include "weft/graph/passes/passes.h"
#include "weft/graph/storage.h"

namespace weft {
namespace {

constexpr size_t kSmall = 4096;  // bytes of a value that may wait for a write
constexpr size_t kShrinks = 64;  // so many times less than what it is made of is small, too

// Whether a node goes to where it can run first: a write, what it reads that takes no bytes of the plan, and the little
// that stands between a gradient and its update.
bool Advances(const Program& program, const Node& node) {
  if (node.op->writes > 0 || node.op == &kParameterOp || node.op == &kInputOp || node.op == &kConstantOp) return true;
  size_t read = 0, made = 0;
  for (ValueId in : node.inputs) read += program.value(in).type.bytes();
  for (uint32_t i = 0; i < node.output_count; ++i) made += program.value(node.output(i)).type.bytes();
  return made <= std::max(kSmall, read / kShrinks);
}

}  // namespace

// The memory plan goes by the order of nodes, and updates are recorded after all gradients.
// Rewrite dw, ..., write(w, dw) to dw, write(w, dw), ..., but not across a reader of w, which would then need a copy.
absl::Status AdvanceWrites(Rewrite& rewrite) {
  Program& program = rewrite.program;
  const uint32_t count = static_cast<uint32_t>(program.nodes.size());
  absl::flat_hash_map<uint32_t, uint32_t> last_reader;  // an old version → the place of the last node before its write
  for (const Node& node : program.nodes) {
    for (int i = 0; i < node.op->writes; ++i) {
      last_reader[static_cast<uint32_t>(StorageRoot(program, node.inputs[i]))] = 0;
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
        const ValueId state = StorageRoot(program, node.inputs[i]);
        place[n] = std::max(place[n], last_reader[static_cast<uint32_t>(state)]);
      }
    }
    for (ValueId in : node.inputs) {
      const auto reader = last_reader.find(static_cast<uint32_t>(StorageRoot(program, in)));
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
