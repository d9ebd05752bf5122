// This pass inserts casts for precision bf16. A program is recorded in f32, and OpDef::autocast gives the dtype in
// which each op takes its f32 inputs. Where a value has another dtype, the pass casts it once, for all readers. Nodes
// that depend on a gradient keep their recorded dtypes, because they belong to an optimizer.
#include <vector>

#include "absl/algorithm/container.h"
#include "weft/base/status.h"
#include "weft/graph/compile/passes/passes.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

// Returns the dtype in which `op` takes input `i`. `now`: the inputs in the new program. `recorded`: their types in the
// old program.
DType Wanted(const OpDef& op, size_t i, VarSpan now, TypeSpan recorded) {
  if (recorded[i].dtype != kF32) return recorded[i].dtype;
  if (op.autocast == Autocast::kProduct) return kBF16;
  if (op.autocast == Autocast::kFirst && i == 0) return now[0].dtype();
  const bool follows = op.autocast == Autocast::kFollow;
  return follows && absl::c_any_of(now, [](Var x) { return x.dtype() == kBF16; }) ? kBF16 : kF32;
}

// Returns, for each value, whether it depends on a gradient.
std::vector<bool> FollowGradients(const Program& program) {
  std::vector<bool> follows(program.values.size(), false);
  for (const Node& node : program.nodes) {
    const bool any = node.op == &kGradientOp || absl::c_any_of(node.inputs, [&](ValueId in) { return follows[in]; });
    for (ValueId out : node.outputs()) follows[out] = any;
  }
  return follows;
}

}  // namespace

// Rewrite product(a, b) to product(cast(a), cast(b)), with casts to bf16
// Rewrite f(a, b) to f(a, cast(b)), with a cast to bf16, where a has become bf16 and f takes bf16 if any input is
// Rewrite g(a) to g(cast(a)), with a cast to f32, where a has become bf16 and g is a root or an op that takes f32
// Rewrite a to cast(a), with a cast to f32, where a has become bf16 and a gradient is taken by a
absl::Status ApplyAutocast(Rewrite& rewrite) {
  if (rewrite.options.precision != kBF16) return absl::OkStatus();
  const Program& program = rewrite.program;
  const Uses uses(rewrite);
  const std::vector<bool> follows_gradient = FollowGradients(program);
  Replay replay(rewrite);
  std::vector<Var> casts(program.values.size());  // by value of the old program; a value is cast only once
  const auto cast_to = [&](DType dtype, ValueId id) {
    const Var now = replay.Now(id);
    if (now.dtype() == dtype) return now;
    if (!casts[id]) {
      replay.tape().SetScope(program.producer(id).scope);
      casts[id] = Cast(now, dtype);
    }
    return casts[id];
  };
  WEFT_RETURN_IF_ERROR(replay.Record([&](const Node& node) -> VarList {
    const Types recorded = program.InputTypes(node);
    const bool follows = node.output_count > 0 && follows_gradient[node.output(0)];
    const VarList now = replay.Now(node.inputs);
    VarList inputs;
    bool changed = false;
    for (size_t i = 0; i < now.size(); ++i) {
      const DType dtype = follows ? recorded[i].dtype : Wanted(*node.op, i, now, recorded);
      inputs.push_back(cast_to(dtype, node.inputs[i]));
      changed = changed || inputs[i].dtype() != recorded[i].dtype;
    }
    replay.tape().SetScope(node.scope);
    VarList outputs =
        changed ? replay.tape().Record(*node.op, node.attrs, inputs) : replay.tape().Copy(program, node, inputs);
    if (!replay.tape().status().ok()) return {};
    for (uint32_t i = 0; i < node.output_count; ++i) {
      const ValueId id = node.output(i);
      if (uses.differentiated_by(id)) outputs[i] = Cast(outputs[i], program.value(id).type.dtype);
    }
    return outputs;
  }));
  for (ValueId root : rewrite.roots) replay.Replace(root, cast_to(program.value(root).type.dtype, root));
  WEFT_RETURN_IF_ERROR(replay.tape().status());
  replay.Finish();
  return absl::OkStatus();
}

}  // namespace weft
