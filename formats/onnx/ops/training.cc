// Records ONNX's optimizers. A node's inputs are the rate, the number of steps done, then all tensors' values, all
// gradients, and all states of each kind. Its outputs are the next values and states. Weft's updates need states, so
// the input values are assigned to states first.
#include <cmath>
#include <functional>

#include "absl/strings/str_cat.h"
#include "weft/formats/onnx/onnx_node.h"

namespace weft {
namespace {

using Update = std::function<VarList(Var w, VarSpan states, Var grad)>;

OnnxResult ForEachTensor(const OnnxNode& node, size_t states, const Update& update) {
  if (node.input_count() < 2 || (node.input_count() - 2) % (2 + states) != 0) {
    return InvalidArgument("it has ", node.input_count(), " inputs");
  }
  const size_t count = (node.input_count() - 2) / (2 + states);
  VarList outputs((1 + states) * count);
  for (size_t i = 0; i < count; ++i) {
    const auto state = [&](size_t kind) {
      const Var value = node.in(2 + kind * count + i);
      const std::string name = absl::StrCat(node.output_count() > 0 ? node.output_name(0) : "", ".", kind, ".", i);
      return Assign(node.tape()->State(name, value.type(), Zeros()), value);
    };
    VarList of_tensor;
    for (size_t s = 0; s < states; ++s) of_tensor.push_back(state(2 + s));
    const VarList next = update(state(0), of_tensor, node.in(2 + count + i));
    for (size_t kind = 0; kind < next.size(); ++kind) outputs[kind * count + i] = next[kind];
  }
  return outputs;
}

Var One(const OnnxNode& node) { return Fill(node.tape(), {kF32, {}}, 1); }

OnnxResult Adagrad(const OnnxNode& node) {
  const AdagradOptions options = {.epsilon = node.Float("epsilon", 1e-6),
                                  .weight_decay = node.Float("norm_coefficient", 0),
                                  .rate_decay = node.Float("decay_factor", 0)};
  const Var step = node.in(1) + 1;
  return ForEachTensor(node, 1, [&](Var w, VarSpan states, Var grad) {
    return AdagradUpdate(w, states[0], grad, node.in(0), One(node), step, options);
  });
}

// ONNX adds ε before it corrects the bias of the second moment; Weft adds it afterwards, so this function rescales ε.
// At step 0, ONNX corrects no bias, which Weft cannot do.
OnnxResult Adam(const OnnxNode& node) {
  const double beta1 = node.Float("alpha", 0.9), beta2 = node.Float("beta", 0.999);
  WEFT_ASSIGN_OR_RETURN(const double step, node.Number(1));
  if (step == 0) return absl::UnimplementedError("Adam without correction of its bias");
  const AdamWOptions options = {.beta1 = beta1,
                                .beta2 = beta2,
                                .epsilon = node.Float("epsilon", 1e-6) / std::sqrt(1 - std::pow(beta2, step)),
                                .weight_decay = node.Float("norm_coefficient", 0)};
  return ForEachTensor(node, 2, [&](Var w, VarSpan states, Var grad) {
    return AdamUpdate(w, states[0], states[1], grad, node.in(0), One(node), node.in(1), options);
  });
}

// In ONNX, the gradient, including weight decay, enters the momentum with factor β; in the first step, β is 1.
OnnxResult Momentum(const OnnxNode& node) {
  WEFT_ASSIGN_OR_RETURN(const double steps, node.Number(1));
  const double given = node.Float("beta", 1), beta = steps > 0 ? given : 1, decay = node.Float("norm_coefficient", 0);
  const bool nesterov = node.String("mode", "standard") == "nesterov";
  if (nesterov && beta != 1) return absl::UnimplementedError("Nesterov's momentum of a scaled gradient");
  const SgdOptions options = {.momentum = node.Float("alpha", 0.9), .weight_decay = beta * decay, .nesterov = nesterov};
  return ForEachTensor(node, 1, [&](Var w, VarSpan states, Var grad) {
    return SgdUpdate(w, states[0], grad, node.in(0), Scale(One(node), beta), options);
  });
}

constexpr OnnxOp Row(const char* name, OnnxResult (*build)(const OnnxNode&)) {
  return {.name = name, .build = build, .domain = "ai.onnx.preview.training"};
}
constexpr OnnxOp kOps[] = {
    Row("Adagrad", Adagrad),
    Row("Adam", Adam),
    Row("Momentum", Momentum),
};

}  // namespace

absl::Span<const OnnxOp> OnnxTraining() { return kOps; }

}  // namespace weft
