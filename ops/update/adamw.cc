// One update of AdamW (Loshchilov and Hutter, 2019) in one pass over memory, rounded as PyTorch's fused kernel does:
//   g = grad · grad_scale;  m ← m + (1-β1)·(g - m);  v ← β2·v + (1-β2)·g²
//   w ← (1 - rate·decay)·w - rate / (1-β1^step) · m / (sqrt(v) / sqrt(1-β2^step) + ε)
// Inputs w, m, v and grad have one type; rate and grad_scale are f32 []; step is i32 []. If grad_scale is not finite,
// nothing changes.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "weft/core/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/kernels/elementwise.h"
#include "weft/ops/kernels/rows.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

struct AdamWAttrs {
  double beta1 = 0, beta2 = 0, epsilon = 0, weight_decay = 0;
  auto Fields() const {
    return std::tuple{AttrField{"beta1", beta1}, AttrField{"beta2", beta2}, AttrField{"epsilon", epsilon},
                      AttrField{"weight_decay", weight_decay}};
  }
};

absl::StatusOr<Types> Infer(const Attrs& attrs, TypeSpan in) {
  const auto options = attrs.as<AdamWAttrs>();
  if (in[1] != in[0] || in[2] != in[0] || in[3] != in[0]) {
    return ShapeError("adamw", "w, m, v and grad must have one type", in);
  }
  const TensorType scalar = {kF32, {}};
  if (in[4] != scalar || in[5] != scalar) return ShapeError("adamw", "rate and grad_scale must be f32[]", in);
  if (in[6] != TensorType{kI32, {}}) return ShapeError("adamw", "step must be i32[]", in);
  const auto is_beta = [](double beta) { return beta >= 0 && beta < 1; };
  if (!is_beta(options.beta1) || !is_beta(options.beta2)) {
    return ShapeError("adamw",
                      absl::StrCat("beta1 = ", options.beta1, ", beta2 = ", options.beta2, ", wanted in [0, 1)"), in);
  }
  if (!(options.epsilon >= 0))
    return ShapeError("adamw", absl::StrCat("epsilon = ", options.epsilon, ", wanted >= 0"), in);
  if (!(options.weight_decay >= 0)) {
    return ShapeError("adamw", absl::StrCat("weight_decay = ", options.weight_decay, ", wanted >= 0"), in);
  }
  return Types{in[0], in[0], in[0]};
}

template <class T>
AdamWStep<T> StepOf(const KernelArgs& a) {
  const auto options = a.attrs.as<AdamWAttrs>();
  const double rate = *a.input<float>(4);
  const int32_t step = std::max(1, *a.input<int32_t>(6));
  return {.keep = static_cast<T>(1 - rate * options.weight_decay),
          .grad_scale = static_cast<T>(*a.input<float>(5)),
          .gain1 = static_cast<T>(1 - options.beta1),
          .beta2 = static_cast<T>(options.beta2),
          .gain2 = static_cast<T>(1 - options.beta2),
          .step_size = static_cast<T>(rate / (1 - std::pow(options.beta1, step))),
          .inverse_root_correction = static_cast<T>(1 / std::sqrt(1 - std::pow(options.beta2, step))),
          .epsilon = static_cast<T>(options.epsilon)};
}

template <class T>
void Kernel(const KernelArgs& a, Rect tile) {
  const AdamWStep<T> step = StepOf<T>(a);
  const bool update = std::isfinite(*a.input<float>(5));
  ForInnerLoops(a.output_shape(0), tile, [&](int64_t begin, int64_t count) {
    if (update) {
      Rows<T>().adamw(step, a.input<T>(0) + begin, a.input<T>(1) + begin, a.input<T>(2) + begin, a.input<T>(3) + begin,
                      a.output<T>(0) + begin, a.output<T>(1) + begin, a.output<T>(2) + begin, count);
      return;
    }
    for (int i = 0; i < 3; ++i) std::memmove(a.output<T>(i) + begin, a.input<T>(i) + begin, count * sizeof(T));
  });
}

void Reference(const ReferenceArgs& a) {
  const auto [beta1, beta2, epsilon, decay] = a.attrs.as<AdamWAttrs>();
  const double rate = a.inputs[4][0], grad_scale = a.inputs[5][0], step = std::max(1.0, a.inputs[6][0]);
  for (size_t e = 0; e < a.outputs[0].size(); ++e) {
    const double g = a.inputs[3][e] * grad_scale;
    const double m = beta1 * a.inputs[1][e] + (1 - beta1) * g;
    const double v = beta2 * a.inputs[2][e] + (1 - beta2) * g * g;
    const double m_hat = m / (1 - std::pow(beta1, step)), v_hat = v / (1 - std::pow(beta2, step));
    a.outputs[0][e] = a.inputs[0][e] * (1 - rate * decay) - rate * m_hat / (std::sqrt(v_hat) + epsilon);
    a.outputs[1][e] = m;
    a.outputs[2][e] = v;
  }
}

VarList Update(VarSpan in, const AdamWOptions& options) {
  return AdamWUpdate(in[0], in[1], in[2], in[3], in[4], in[5], in[6], options);
}
VarList Example(VarSpan in) { return Update(in, {}); }

constexpr OpExample kExamples[] = {
    {.in = "[] [] [] [] f32[] f32[] i32[]", .record = Example, .low = 0.1, .below = 10, .out = "[]"},
    {.in = "[3,5] [3,5] [3,5] [3,5] f32[] f32[] i32[]", .record = Example, .low = 0.1, .below = 1000, .out = "[3,5]"},
    {.in = "[130,17] [130,17] [130,17] [130,17] f32[] f32[] i32[]", .record = Example, .low = 0.001, .below = 2},
    {.in = "[0,3] [0,3] [0,3] [0,3] f32[] f32[] i32[]", .record = Example},
    {.in = "[3] [3] [3] [2] f32[] f32[] i32[]", .record = Example, .error = "w, m, v and grad must have one type"},
    {.in = "[3] [3] [3] [3] f32[1] f32[] i32[]", .record = Example, .error = "rate and grad_scale must be f32[]"},
    {.in = "[3] [3] [3] [3] f32[] f32[] f32[]", .record = Example, .error = "step must be i32[]"},
    {.in = "[3] [3] [3] [3] f32[] f32[] i32[]",
     .record = [](VarSpan in) { return Update(in, {.beta1 = 1}); },
     .error = "beta1 = 1, beta2 = 0.999, wanted in [0, 1)"},
    {.in = "[3] [3] [3] [3] f32[] f32[] i32[]",
     .record = [](VarSpan in) { return Update(in, {.beta2 = -0.1}); },
     .error = "beta2 = -0.1, wanted in [0, 1)"},
    {.in = "[3] [3] [3] [3] f32[] f32[] i32[]",
     .record = [](VarSpan in) { return Update(in, {.epsilon = -1e-8}); },
     .error = "epsilon = -1e-08, wanted >= 0"},
    {.in = "[3] [3] [3] [3] f32[] f32[] i32[]",
     .record = [](VarSpan in) { return Update(in, {.weight_decay = -0.01}); },
     .error = "weight_decay = -0.01, wanted >= 0"},
};

}  // namespace

constexpr OpDef kAdamw = {.name = "adamw",
                          .infer = Infer,
                          .outputs = 3,
                          .kernels = {Kernel<float>, Kernel<double>},
                          .cut = Cut::kBoth,
                          .writes = 3,
                          .no_gradient = "a gradient through a write is an error",
                          .reference = Reference,
                          .cost = FlopsPerElement<14>,
                          .attrs = AttrOpsOf<AdamWAttrs>(),
                          .examples = kExamples};

VarList AdamWUpdate(Var w, Var m, Var v, Var grad, Var rate, Var grad_scale, Var step, const AdamWOptions& options) {
  const AdamWAttrs attrs = {options.beta1, options.beta2, options.epsilon, options.weight_decay};
  return RecordAll(kAdamw, {w, m, v, grad, rate, grad_scale, step}, Attrs::Of(attrs));
}

}  // namespace weft
