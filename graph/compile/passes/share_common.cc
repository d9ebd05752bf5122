// Common-subexpression elimination: of several nodes that compute the same values, one is left. Models record a cast, a
// mask or a constant wherever they need one, and gradients repeat computations of the forward pass.
#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "weft/graph/compile/passes/passes.h"

namespace weft {

absl::Status ShareCommon(Rewrite& rewrite) { return ShareCommon(rewrite, nullptr); }

// Rewrite two nodes op(x; a), with equal inputs x and attributes a, to one node
// Random ops are shared, too, because their attributes name the stream from which they draw. Writes are not shared. Nor
// are values by which a gradient is taken, because it counts only the value's own uses.
absl::Status ShareCommon(Rewrite& rewrite, const OpDef* only) {
  Program& program = rewrite.program;
  const auto hash = [&](uint32_t n) {
    const Node& node = program.nodes[n];
    return absl::HashOf(node.op, node.inputs, node.op->attrs.hash == nullptr ? 0 : node.op->attrs.hash(node.attrs));
  };
  const auto equal = [&](uint32_t i, uint32_t j) {
    const Node &a = program.nodes[i], &b = program.nodes[j];
    return i == j ||  // also if an attribute is NaN, which is not equal to itself
           (a.op == b.op && a.inputs == b.inputs &&
            (a.op->attrs.equal == nullptr || a.op->attrs.equal(a.attrs, b.attrs)));
  };
  const Uses uses(rewrite);
  Renames renames(program);
  absl::flat_hash_set<uint32_t, decltype(hash), decltype(equal)> seen(0, hash, equal);
  for (uint32_t n = 0; n < program.nodes.size(); ++n) {
    Node& node = program.nodes[n];
    renames.Apply(node);
    if (node.op->writes > 0 || (only != nullptr && node.op != only)) continue;
    if (absl::c_any_of(node.outputs(), [&](ValueId id) { return uses.differentiated_by(id); })) continue;
    const auto [it, added] = seen.insert(n);
    if (added) continue;
    const Node& first = program.nodes[*it];
    for (uint32_t i = 0; i < node.output_count; ++i) renames.Rename(node.output(i), first.output(i));
  }
  renames.Apply(rewrite.roots);
  return absl::OkStatus();
}

}  // namespace weft
