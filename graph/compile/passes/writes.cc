// These passes order reads and writes of state.
//
// AdvanceWrites moves updates up. Optimizers are recorded after all gradients, and the memory plan follows the order of
// nodes, so all gradients would be live at once. If an update directly follows its gradient, the gradient's bytes can
// be reused. For the same reason, messages and nodes that depend on updates or messages move up.
// With a maximum norm, and if all weights change or none, each update waits for all gradients, and cannot move.
//
// OrderWrites makes each reader read the version that it was recorded with. A write overwrites the bytes of the
// previous version. Edges of the schedule make readers that were recorded before the write run before it. Readers that
// were recorded after the write read a copy, which this pass records. It is the last pass that changes the program,
// because it depends on the order of all nodes.
#include <algorithm>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "weft/base/status.h"
#include "weft/graph/compile/passes/passes.h"
#include "weft/graph/compile/storage.h"

namespace weft {
namespace {

constexpr size_t kMaxSmallBytes = 4096;  // of a node's outputs: keeping this many alive until a write costs little

// Reports whether `node` moves up to the first place where it can run. Writes move. Inputs, parameters and constants
// move, because they take no bytes of the arena. Nodes with small outputs move, because they may stand between a
// gradient and its update.
bool Advances(const Program& program, const Node& node) {
  if (node.op->writes > 0 || node.op == &kParameterOp || node.op == &kInputOp || node.op == &kConstantOp) return true;
  return Shrinks(program, node, kMaxSmallBytes);
}

// Returns, by node, whether the node prepares a gradient for messages, and may move up: it has one large input, which
// no other node reads and whose bytes are then free.
std::vector<bool> PreparesMessage(const Rewrite& rewrite, absl::Span<const ValueId> roots) {
  const Program& program = rewrite.program;
  const Uses uses(rewrite);
  std::vector<bool> prepares(program.nodes.size()), sent(program.values.size());  // `sent`: by value
  for (size_t n = program.nodes.size(); n-- > 0;) {
    const Node& node = program.nodes[n];
    if (node.op->messages != nullptr) {
      for (ValueId in : node.inputs) sent[in] = true;
    }
    if (node.output_count != 1 || !sent[node.output(0)] || node.op->writes > 0) continue;
    const auto is_large = [&](ValueId in) { return program.value(in).type.bytes() > kMaxSmallBytes; };
    if (absl::c_count_if(node.inputs, is_large) != 1) continue;
    const ValueId large = *absl::c_find_if(node.inputs, is_large);
    if (!uses.OnlyOne(large)) continue;
    const OpDef& source = *program.producer(roots[large]).op;
    if (source.writes > 0 || &source == &kParameterOp || &source == &kInputOp || &source == &kConstantOp) continue;
    prepares[n] = program.value(node.output(0)).type.bytes() <= program.value(large).type.bytes();
    sent[large] = prepares[n];
  }
  return prepares;
}

}  // namespace

// Rewrite dw, ..., write(w, dw) to dw, write(w, dw), ..., but not across a reader of w, which would then need a copy
// Rewrite write(w), ..., f(w) to write(w), f(w), ..., and the same for messages and the nodes that prepare a
// value for them, in programs with messages. Messages keep their recorded order, which is the same on all ranks.
// Bytes are reused in the order of nodes, so with another order on each rank, ranks could wait for each other forever.
absl::Status AdvanceWrites(Rewrite& rewrite) {
  Program& program = rewrite.program;
  const uint32_t count = static_cast<uint32_t>(program.nodes.size());
  const std::vector<ValueId> roots = StorageRoots(program);
  absl::flat_hash_map<ValueId, uint32_t> last_reader;  // old version → position of its last reader so far
  for (const Node& node : program.nodes) {
    for (int i = 0; i < node.op->writes; ++i) last_reader[roots[node.inputs[i]]] = 0;
  }
  if (last_reader.empty()) return absl::OkStatus();

  const bool has_messages = absl::c_any_of(program.nodes, [](const Node& n) { return n.op->messages != nullptr; });
  uint32_t last_message = 0;         // position of the last message so far
  std::vector<bool> follows(count);  // by node: whether it is or depends on a write or a message
  const std::vector<bool> prepares = PreparesMessage(rewrite, roots);
  std::vector<uint32_t> position(count);  // by node: the index of the node that it now follows; its own if it stays
  for (uint32_t n = 0; n < count; ++n) {
    const Node& node = program.nodes[n];
    position[n] = n;
    follows[n] = node.op->writes > 0 || node.op->messages != nullptr;
    for (ValueId in : node.inputs) follows[n] = follows[n] || follows[program.value(in).producer];
    if (Advances(program, node) || (has_messages && (follows[n] || prepares[n]))) {
      position[n] = 0;
      for (ValueId in : node.inputs) position[n] = std::max(position[n], position[program.value(in).producer]);
      for (int i = 0; i < node.op->writes; ++i) position[n] = std::max(position[n], last_reader[roots[node.inputs[i]]]);
    }
    if (node.op->messages != nullptr) last_message = position[n] = std::max(position[n], last_message);
    for (ValueId in : node.inputs) {
      const auto reader = last_reader.find(roots[in]);
      if (reader != last_reader.end()) reader->second = std::max(reader->second, position[n]);
    }
  }

  Reorder(&program, position);
  return absl::OkStatus();
}

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
