// This pass replaces each gradient node by the ops that compute the gradients. Earlier nodes have been expanded
// already, so gradients of gradients expand from the inside out. Mode kEval takes effect here, before ops are
// differentiated.
//
// Differentiate is reverse-mode differentiation. It walks the nodes backwards, and records the op's gradient rule of
// each node between `wrt` and the loss. A value's gradient is the sum of the contributions of its readers. The walk
// visits all readers before it comes to the node that made the value.
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "weft/base/status.h"
#include "weft/core/tape.h"
#include "weft/graph/compile/passes/passes.h"
#include "weft/graph/compile/storage.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

// Returns d `loss` / d `wrt[i]` for each i: zeros if the loss does not depend on `wrt[i]`. Records the gradients on the
// tape of `loss`, as ordinary ops. Differentiates only node `first` and later nodes; values of earlier nodes are
// constants, unless they are in `wrt`. The tape fails if a path from `wrt` to the loss has a write, or an op without a
// gradient. `partial`: see GradientAttrs.
VarList Differentiate(Var loss, VarSpan wrt, NodeId first = NodeId{0}, bool partial = false);

// Returns the gradients of an op that has no gradient rule. Records the op's elementary form, and differentiates the
// sum of all elements of output · upstream gradient. Fused gradient ops have no rule, so second derivatives use this
// function.
VarList GradientOfElementary(const OpDef& op, const GradientArgs& args) {
  Tape* tape = args.inputs[0].tape;
  const NodeId first{static_cast<uint32_t>(tape->program().nodes.size())};
  const VarList outputs = op.elementary(args.attrs, args.inputs);
  Var loss;
  for (size_t i = 0; i < args.grads.size(); ++i) {
    if (!args.grads[i]) continue;
    const Var term = Sum(outputs[i] * args.grads[i]);
    loss = loss ? loss + term : term;
  }
  VarList wrt, gradients(args.inputs.size());
  std::vector<size_t> inputs;  // by entry of wrt: its index in args.inputs; a repeated input has only one entry
  for (size_t i = 0; i < args.inputs.size(); ++i) {
    const auto same = [&](size_t j) { return args.inputs[j].id == args.inputs[i].id; };
    if (!IsFloat(args.inputs[i].dtype()) || absl::c_any_of(inputs, same)) continue;
    inputs.push_back(i);
    wrt.push_back(args.inputs[i]);
  }
  const VarList found = Differentiate(loss, wrt, first);
  for (size_t k = 0; k < inputs.size(); ++k) gradients[inputs[k]] = found[k];
  return gradients;
}

// Checks the result of an op's gradient rule: it must have one Var for each input, which is empty or has the input's
// type.
absl::Status CheckGradients(const OpDef& op, VarSpan inputs, VarSpan gradients) {
  if (gradients.size() != inputs.size()) {
    return absl::InternalError(
        absl::StrCat(op.name, ": its gradient gave ", gradients.size(), " values for ", inputs.size(), " inputs"));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!gradients[i] || gradients[i].type() == inputs[i].type()) continue;
    return absl::InternalError(absl::StrCat(op.name, ": its gradient by input ", i, " is ",
                                            ToString(gradients[i].type()), ", wanted ", ToString(inputs[i].type())));
  }
  return absl::OkStatus();
}

// Returns the gradients of a node's inputs, by the op's gradient rule. Without a rule, differentiates
// OpDef::elementary, the same op in smaller ops. If the op is a write or has neither of these, the tape fails, and the
// result is empty.
VarList NodeGradients(const OpDef& op, const GradientArgs& args) {
  Tape* tape = args.inputs[0].tape;
  if (op.writes > 0 || op.no_gradient != nullptr) {
    Types inputs;
    for (Var v : args.inputs) inputs.push_back(v.type());
    const char* reason = op.writes > 0 ? "a write can't be differentiated" : op.no_gradient;
    tape->Fail(ShapeError(op.name, absl::StrCat("no gradient, because ", reason), inputs));
    return {};
  }
  if (op.gradient == nullptr && op.elementary == nullptr) {
    tape->Fail(absl::UnimplementedError(absl::StrCat(
        op.name, ": its OpDef has neither a gradient, nor an elementary spelling, nor a reason for none")));
    return {};
  }
  VarList gradients = op.gradient != nullptr ? op.gradient(args) : GradientOfElementary(op, args);
  if (tape->status().ok()) tape->Fail(CheckGradients(op, args.inputs, gradients));
  return gradients;
}

VarList Differentiate(Var loss, VarSpan wrt, NodeId first, bool partial) {
  Tape* tape = loss.tape;
  const auto program = [tape]() -> const Program& { return tape->program(); };
  const size_t begin = first, end = program().nodes.size();
  std::vector<bool> depends(program().values.size(), false);  // by value: whether it depends on wrt
  for (Var v : wrt) depends[v.id] = true;
  for (size_t n = begin; n < end; ++n) {
    const Node& node = program().nodes[n];
    if (absl::c_none_of(node.inputs, [&](ValueId in) { return depends[in]; })) continue;
    for (ValueId out : node.outputs()) depends[out] = true;
  }

  std::vector<Var> grads(program().values.size());  // by value: the sum of the gradients so far
  grads[loss.id] = FillLike(loss, 1);
  for (size_t n = end; n-- > begin && tape->status().ok();) {
    const Node node = program().nodes[n];  // a copy: recording moves the nodes
    VarList inputs, outputs, upstream;
    for (ValueId id : node.inputs) inputs.push_back({tape, id});
    for (ValueId id : node.outputs()) {
      outputs.push_back({tape, id});
      upstream.push_back(grads[id]);
    }
    const bool reached = absl::c_any_of(upstream, [](Var grad) { return grad.tape != nullptr; });
    if (!reached || absl::c_none_of(node.inputs, [&](ValueId in) { return depends[in]; })) continue;
    const auto is_output = [&](Var v) { return absl::c_any_of(outputs, [&](Var out) { return out.id == v.id; }); };
    if (partial && absl::c_any_of(wrt, is_output)) continue;
    tape->SetScope(node.scope);
    const VarList gradients = NodeGradients(*node.op, {node.attrs, inputs, outputs, upstream});
    if (!tape->status().ok()) break;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!gradients[i] || !depends[inputs[i].id]) continue;
      Var& sum = grads[inputs[i].id];
      sum = sum ? Add(sum, gradients[i]) : gradients[i];
    }
  }

  VarList result;
  for (Var v : wrt) result.push_back(grads[v.id] ? grads[v.id] : FillLike(v, 0));
  return result;
}

}  // namespace

// Rewrite gradient(loss, x) to the ops that compute it
// Rewrite dropout(x) to x in mode kEval, and any other op with OpDef::in_eval to the result of that function
// If a gradient is taken by the output of such an op, the output becomes copy(x), because the gradient by x may differ.
absl::Status ExpandGradients(Rewrite& rewrite) {
  const Uses uses(rewrite);
  Replay replay(rewrite);
  WEFT_RETURN_IF_ERROR(replay.Record([&](const Node& node) -> VarList {
    const bool in_eval = rewrite.options.mode == kEval && node.op->in_eval != nullptr;
    if (node.op != &kGradientOp && !in_eval) return {};
    const VarList inputs = replay.Now(node.inputs);
    if (node.op == &kGradientOp) {
      return Differentiate(inputs[0], VarSpan(inputs).subspan(1), NodeId{0}, node.attrs.as<GradientAttrs>().partial);
    }
    VarList outputs = node.op->in_eval(node.attrs, inputs);
    for (uint32_t i = 0; i < node.output_count; ++i) {
      if (uses.differentiated_by(node.output(i))) outputs[i] = Record(kCopyOp, {outputs[i]});
    }
    return outputs;
  }));
  replay.Finish();
  return absl::OkStatus();
}

}  // namespace weft
