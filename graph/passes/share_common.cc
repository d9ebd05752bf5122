#include "absl/container/flat_hash_set.h"
#include "weft/graph/passes/passes.h"

namespace weft {
namespace {

struct NodeHash {
  const Program* program;
  size_t operator()(uint32_t n) const {
    const Node& node = program->nodes[n];
    return absl::HashOf(node.op, node.inputs, node.op->attrs.hash == nullptr ? 0 : node.op->attrs.hash(node.attrs));
  }
};

struct NodeEqual {
  const Program* program;
  bool operator()(uint32_t i, uint32_t j) const {
    const Node &a = program->nodes[i], &b = program->nodes[j];
    return i == j ||  // also where an attribute is NaN, which equals nothing
           (a.op == b.op && a.inputs == b.inputs &&
            (a.op->attrs.equal == nullptr || a.op->attrs.equal(a.attrs, b.attrs)));
  }
};

}  // namespace

// Rewrite op(x; a), op(x; a) to one node. Random ops too: their attributes hold the stream they draw from. What a
// gradient is taken by stays a node of its own, because the gradient is of its own uses.
absl::Status ShareCommon(Rewrite& rewrite) {
  Program& program = rewrite.program;
  std::vector<ValueId> now(program.values.size());
  for (uint32_t v = 0; v < now.size(); ++v) now[v] = ValueId{v};
  const auto resolve = [&](ValueId& id) { id = now[static_cast<uint32_t>(id)]; };

  std::vector<bool> alone(program.values.size(), false);
  for (const Node& node : program.nodes) {
    if (node.op != &kGradientOp) continue;
    for (size_t i = 1; i < node.inputs.size(); ++i) alone[static_cast<uint32_t>(node.inputs[i])] = true;
  }

  absl::flat_hash_set<uint32_t, NodeHash, NodeEqual> seen(0, NodeHash{&program}, NodeEqual{&program});
  for (uint32_t n = 0; n < program.nodes.size(); ++n) {
    Node& node = program.nodes[n];
    for (ValueId& in : node.inputs) resolve(in);
    bool shared = node.op->writes == 0;
    for (uint32_t i = 0; i < node.output_count; ++i) shared = shared && !alone[static_cast<uint32_t>(node.output(i))];
    if (!shared) continue;
    const auto [it, added] = seen.insert(n);
    if (added) continue;
    const Node& first = program.nodes[*it];
    for (uint32_t i = 0; i < node.output_count; ++i) now[static_cast<uint32_t>(node.output(i))] = first.output(i);
  }
  for (ValueId& root : rewrite.roots) resolve(root);
  return absl::OkStatus();
}

}  // namespace weft
