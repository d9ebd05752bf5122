// These passes leave fewer nodes to compute.
//
// FoldConstants computes small values that depend on constants only, once at compile time instead of in every
// execution. Examples are masks, position tables and their casts. ShareCommon is common-subexpression elimination:
// models record a cast, a mask or a constant wherever they need one, and gradients repeat computations of the forward
// pass. DropDead is dead-code elimination: other passes leave nodes behind on which no root depends.
#include <map>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "weft/base/arena.h"
#include "weft/graph/compile/evaluate.h"
#include "weft/graph/compile/passes/passes.h"

namespace weft {
namespace {

constexpr size_t kMaxBytes = 4096;  // of a folded value: keeps compiled graphs small

// Reports whether a node can be computed now: it is deterministic, has one small output, and reads only constants.
bool Folds(const Program& program, const Node& node) {
  if (node.op->random || node.op->writes > 0 || node.output_count != 1) return false;
  const Types inputs = program.InputTypes(node), outputs = program.OutputTypes(node);
  if (outputs[0].bytes() > kMaxBytes || (!node.op->view && KernelFor(*node.op, inputs, outputs) == nullptr))
    return false;
  return absl::c_all_of(node.inputs, [&](ValueId in) { return program.producer(in).op == &kConstantOp; });
}

}  // namespace

// Rewrite op(constants) to a constant
// Equal folded constants share an entry of the program's table, so that ShareCommon makes their nodes one node.
absl::Status FoldConstants(Rewrite& rewrite) {
  Program& program = rewrite.program;
  std::map<std::pair<std::string, std::vector<std::byte>>, size_t> index_of;
  for (Node& node : program.nodes) {
    if (node.op == &kConstantOp || !Folds(program, node)) continue;
    const TensorType type = program.value(node.output(0)).type;
    std::vector<Tensor> inputs;
    Arena arena;  // kernels need aligned bytes
    for (ValueId in : node.inputs) {
      const ConstantData& data = program.constant(program.producer(in));
      inputs.push_back({data.type, arena.Allocate(data.type.bytes())});
      std::copy(data.bytes->begin(), data.bytes->end(), inputs.back().data);
    }
    Tensor output = {type, arena.Allocate(type.bytes())};
    if (node.op->view) {
      output.data = inputs[0].data;
    } else {
      Evaluate(*node.op, node.attrs, inputs, absl::MakeConstSpan(&output, 1));
    }
    const std::vector<std::byte> bytes(output.data, output.data + type.bytes());
    const auto [known, added] = index_of.try_emplace({ToString(type), bytes}, program.constants.size());
    if (added) program.constants.push_back({type, std::make_shared<const std::vector<std::byte>>(bytes)});
    node.op = &kConstantOp;
    node.attrs = Attrs::Of(SourceAttrs{type, static_cast<int32_t>(known->second)});
    node.inputs.clear();
  }
  return absl::OkStatus();
}

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

// Rewrite x, dead(x), f(x) to x, f(x)
// Then numbers the remaining values without gaps.
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
