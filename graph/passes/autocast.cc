#include <algorithm>

#include "weft/core/tape.h"
#include "weft/graph/passes/passes.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

// The dtype in which `op` should get input i, of those that its inputs have now and were recorded with.
DType Wanted(const OpDef& op, size_t i, VarSpan now, TypeSpan recorded) {
  if (recorded[i].dtype != kF32) return recorded[i].dtype;
  switch (op.autocast) {
    case Autocast::kAsRecorded:
      return kF32;
    case Autocast::kProduct:
      return kBF16;
    case Autocast::kFollow:
      return std::any_of(now.begin(), now.end(), [](Var x) { return x.dtype() == kBF16; }) ? kBF16 : kF32;
    case Autocast::kFirst:
      break;
  }
  return i == 0 ? now[0].dtype() : kF32;
}

}  // namespace

// Records the program again, node by node, with casts between bf16 and f32 as OpDef::autocast asks; a value is cast
// once, whoever reads it.
// Rewrite product(a, b) to product(cast(a), cast(b)), and f(a, b) to f(a, cast(b)) where f follows a in bf16.
// Rewrite any other g(a) to g(cast(a)) where a has become bf16; so, too, for roots, losses, and what a gradient is
// taken by, whose readers then read the value in f32.
// What depends on a gradient stays as it is: it is an optimizer's.
absl::Status ApplyAutocast(Rewrite& rewrite) {
  if (rewrite.precision != kBF16) return absl::OkStatus();
  const Program& program = rewrite.program;
  const auto index = [](ValueId id) { return static_cast<size_t>(id); };
  std::vector<bool> differentiated_by(program.values.size(), false), follows_gradient = differentiated_by;
  for (const Node& node : program.nodes) {
    const bool gradient = node.op == &kGradientOp;
    bool follows = gradient;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (gradient && i > 0) differentiated_by[index(node.inputs[i])] = true;
      follows = follows || follows_gradient[index(node.inputs[i])];
    }
    for (uint32_t i = 0; i < node.output_count; ++i) follows_gradient[index(node.output(i))] = follows;
  }

  Tape tape(program);
  std::vector<Var> values(program.values.size()), casts(program.values.size());
  const auto as = [&](ValueId id, DType dtype) {
    const Var now = values[index(id)];
    if (now.dtype() == dtype) return now;
    Var& cast = casts[index(id)];
    if (!cast) {
      tape.SetScope(program.producer(id).scope);
      cast = Cast(now, dtype);
    }
    return cast;
  };
  for (const Node& node : program.nodes) {
    const Types recorded = program.InputTypes(node);
    const bool follows = node.output_count > 0 && follows_gradient[index(node.output(0))];
    VarList now, inputs;
    for (ValueId in : node.inputs) now.push_back(values[index(in)]);
    bool changed = false;
    for (size_t i = 0; i < now.size(); ++i) {
      inputs.push_back(as(node.inputs[i], follows ? recorded[i].dtype : Wanted(*node.op, i, now, recorded)));
      changed = changed || inputs[i].dtype() != recorded[i].dtype;
    }
    tape.SetScope(node.scope);
    const VarList outputs = changed ? tape.Record(*node.op, node.attrs, inputs) : tape.Copy(program, node, inputs);
    for (uint32_t i = 0; i < node.output_count && tape.status().ok(); ++i) {
      const ValueId id = node.output(i);
      values[index(id)] = differentiated_by[index(id)] ? Cast(outputs[i], program.value(id).type.dtype) : outputs[i];
    }
    if (!tape.status().ok()) return tape.status();
  }
  for (ValueId& root : rewrite.roots) root = as(root, program.value(root).type.dtype).id;
  rewrite.program = std::move(tape).TakeProgram();
  return absl::OkStatus();
}

}  // namespace weft
