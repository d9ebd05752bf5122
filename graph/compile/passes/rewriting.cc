#include "weft/graph/compile/passes/rewriting.h"

#include <numeric>
#include <utility>

#include "absl/algorithm/container.h"
#include "weft/base/status.h"

namespace weft {

Uses::Uses(const Rewrite& rewrite) : uses_(rewrite.program.values.size()) {
  for (uint32_t n = 0; n < rewrite.program.nodes.size(); ++n) {
    const Node& node = rewrite.program.nodes[n];
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      Use& use = uses_[node.inputs[i]];
      ++use.count;
      use.reader = NodeId{n};
      if (node.op == &kGradientOp && i > 0) use.differentiated_by = true;  // input 0 is the loss
    }
  }
  for (ValueId root : rewrite.roots) {
    Use& use = uses_[root];
    ++use.count;
    ++use.roots;
  }
}

Replay::Replay(Rewrite& rewrite) : rewrite_(rewrite), tape_(rewrite.program), now_(rewrite.program.values.size()) {}

VarList Replay::Now(absl::Span<const ValueId> ids) const {
  VarList vars;
  for (ValueId id : ids) vars.push_back(Now(id));
  return vars;
}

bool Replay::Replaced(const Node& node) const {
  return absl::c_any_of(node.outputs(), [this](ValueId id) { return static_cast<bool>(Now(id)); });
}

absl::Status Replay::Record(absl::FunctionRef<VarList(const Node&)> record) {
  for (; next_ < program().nodes.size(); ++next_) {
    const Node& node = program().nodes[next_];
    if (Replaced(node)) continue;
    tape_.SetScope(node.scope);
    const VarList outputs = record(node);
    WEFT_RETURN_IF_ERROR(tape_.status());
    Replace(node, outputs.empty() ? Copy(node) : outputs);
  }
  return absl::OkStatus();
}

void Replay::CopyUntil(uint32_t end) {
  const ScopeId scope = tape_.scope();
  for (; next_ < end; ++next_) {
    const Node& node = program().nodes[next_];
    if (!Replaced(node)) Replace(node, Copy(node));
  }
  tape_.SetScope(scope);
}

void Replay::Replace(const Node& node, VarSpan outputs) {
  for (uint32_t i = 0; i < node.output_count; ++i) Replace(node.output(i), outputs[i]);
}

void Replay::Finish() {
  for (ValueId& root : rewrite_.roots) root = Now(root).id;
  rewrite_.program = std::move(tape_).TakeProgram();
}

Renames::Renames(const Program& program) : now_(program.values.size()) {
  for (uint32_t v = 0; v < now_.size(); ++v) now_[v] = ValueId{v};
}

void Renames::Apply(absl::Span<ValueId> ids) const {
  for (ValueId& id : ids) id = now_[id];
}

void Reorder(Program* program, absl::Span<const uint32_t> position) {
  std::vector<uint32_t> order(position.size());
  std::iota(order.begin(), order.end(), 0);
  absl::c_stable_sort(order, [&](uint32_t a, uint32_t b) { return position[a] < position[b]; });
  std::vector<Node> nodes;
  for (uint32_t before : order) {
    const NodeId now{static_cast<uint32_t>(nodes.size())};
    nodes.push_back(std::move(program->nodes[before]));
    for (ValueId id : nodes.back().outputs()) program->values[id].producer = now;
  }
  program->nodes = std::move(nodes);
}

}  // namespace weft
