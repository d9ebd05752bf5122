// These are the updates of a weight by AdamW and SGD, which have kernels. ops/ops.h has all formulas. AdamW's kernel
// rounds as PyTorch's fused kernel does:
//   g = grad · grad_scale;  m ← m + (1-β1)·(g - m);  v ← β2·v + (1-β2)·g²
//   w ← (1 - rate·decay)·w - rate / (1-β1^step) · m / (sqrt(v) / sqrt(1-β2^step) + ε)
//
// Inputs are w, its states and grad, all of one type; rate and grad_scale, f32 []; and, except for SGD, step, i32 [].
// If grad_scale is not finite, nothing changes.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "weft/base/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/attributes.h"
#include "weft/ops/kernels/rows/elementwise.h"
#include "weft/ops/kernels/rows/rows.h"
#include "weft/ops/ops.h"

namespace weft {

absl::Status CheckUpdateTypes(const char* op, TypeSpan in, size_t states) {
  const TensorType scalar = {kF32, {}};
  for (size_t i = 1; i < states + 2; ++i) {
    if (in[i] != in[0]) return ShapeError(op, "w, its states and grad must have one type", in);
  }
  if (in[states + 2] != scalar || in[states + 3] != scalar) {
    return ShapeError(op, "rate and grad_scale must be f32[]", in);
  }
  const bool has_step = in.size() > states + 4;
  if (has_step && in[states + 4] != TensorType{kI32, {}}) return ShapeError(op, "step must be i32[]", in);
  return absl::OkStatus();
}

namespace {

// Calls update(begin, count) for each inner loop of `tile`. If grad_scale is not finite, copies the old state.
template <class T, class F>
void UpdateRuns(const KernelArgs& a, Rect tile, float grad_scale, F update) {
  const bool finite = std::isfinite(grad_scale);
  ForInnerLoops(a.output_shape(0), tile, [&](int64_t begin, int64_t count) {
    if (finite) return update(begin, count);
    for (int i = 0; i < static_cast<int>(a.outputs.size()); ++i) {
      std::memmove(a.output<T>(i) + begin, a.input<T>(i) + begin, count * sizeof(T));
    }
  });
}

absl::StatusOr<Types> InferAdamW(const Attrs& attrs, TypeSpan in) {
  const auto options = attrs.as<AdamWOptions>();
  WEFT_RETURN_IF_ERROR(CheckUpdateTypes("adamw", in, 2));
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
  const auto options = a.attrs.as<AdamWOptions>();
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
void AdamWKernel(const KernelArgs& a, Rect tile) {
  const AdamWStep<T> step = StepOf<T>(a);
  UpdateRuns<T>(a, tile, *a.input<float>(5), [&](int64_t begin, int64_t count) {
    Rows<T>().adamw(step, a.input<T>(0) + begin, a.input<T>(1) + begin, a.input<T>(2) + begin, a.input<T>(3) + begin,
                    a.output<T>(0) + begin, a.output<T>(1) + begin, a.output<T>(2) + begin, count);
  });
}

void AdamWReference(const ReferenceArgs& a) {
  const auto [beta1, beta2, epsilon, decay] = a.attrs.as<AdamWOptions>();
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

constexpr AdamWOptions kAdamW = {}, kLargeBeta = {.beta1 = 1}, kNegativeBeta = {.beta2 = -0.1};
constexpr AdamWOptions kNegativeEpsilon = {.epsilon = -1e-8}, kNegativeDecay = {.weight_decay = -0.01};

constexpr OpExample kAdamWExamples[] = {
    {.in = "[] [] [] [] f32[] f32[] i32[]", .record = RecordWith<kAdamw, kAdamW>, .low = 0.1, .below = 10, .out = "[]"},
    {.in = "[3,5] [3,5] [3,5] [3,5] f32[] f32[] i32[]",
     .record = RecordWith<kAdamw, kAdamW>,
     .low = 0.1,
     .below = 1000,
     .out = "[3,5]"},
    {.in = "[130,17] [130,17] [130,17] [130,17] f32[] f32[] i32[]",
     .record = RecordWith<kAdamw, kAdamW>,
     .low = 0.001,
     .below = 2},
    {.in = "[0,3] [0,3] [0,3] [0,3] f32[] f32[] i32[]", .record = RecordWith<kAdamw, kAdamW>},
    {.in = "[3] [3] [3] [2] f32[] f32[] i32[]",
     .record = RecordWith<kAdamw, kAdamW>,
     .error = "w, its states and grad must have one type"},
    {.in = "[3] [3] [3] [3] f32[1] f32[] i32[]",
     .record = RecordWith<kAdamw, kAdamW>,
     .error = "rate and grad_scale must be f32[]"},
    {.in = "[3] [3] [3] [3] f32[] f32[] f32[]", .record = RecordWith<kAdamw, kAdamW>, .error = "step must be i32[]"},
    {.in = "[3] [3] [3] [3] f32[] f32[] i32[]",
     .record = RecordWith<kAdamw, kLargeBeta>,
     .error = "beta1 = 1, beta2 = 0.999, wanted in [0, 1)"},
    {.in = "[3] [3] [3] [3] f32[] f32[] i32[]",
     .record = RecordWith<kAdamw, kNegativeBeta>,
     .error = "beta2 = -0.1, wanted in [0, 1)"},
    {.in = "[3] [3] [3] [3] f32[] f32[] i32[]",
     .record = RecordWith<kAdamw, kNegativeEpsilon>,
     .error = "epsilon = -1e-08, wanted >= 0"},
    {.in = "[3] [3] [3] [3] f32[] f32[] i32[]",
     .record = RecordWith<kAdamw, kNegativeDecay>,
     .error = "weight_decay = -0.01, wanted >= 0"},
};

absl::StatusOr<Types> InferSgd(const Attrs& attrs, TypeSpan in) {
  const auto [momentum, decay, nesterov] = attrs.as<SgdOptions>();
  WEFT_RETURN_IF_ERROR(CheckUpdateTypes("sgd", in, 1));
  if (!(momentum >= 0)) return ShapeError("sgd", absl::StrCat("momentum = ", momentum, ", wanted >= 0"), in);
  if (!(decay >= 0)) return ShapeError("sgd", absl::StrCat("weight_decay = ", decay, ", wanted >= 0"), in);
  return Types{in[0], in[0]};
}

template <class T>
void SgdKernel(const KernelArgs& a, Rect tile) {
  const auto options = a.attrs.as<SgdOptions>();
  const SgdStep<T> step = {.grad_scale = static_cast<T>(*a.input<float>(4)),
                           .weight_decay = static_cast<T>(options.weight_decay),
                           .momentum = static_cast<T>(options.momentum),
                           .rate = static_cast<T>(*a.input<float>(3)),
                           .nesterov = options.nesterov};
  UpdateRuns<T>(a, tile, *a.input<float>(4), [&](int64_t begin, int64_t count) {
    Rows<T>().sgd(step, a.input<T>(0) + begin, a.input<T>(1) + begin, a.input<T>(2) + begin, a.output<T>(0) + begin,
                  a.output<T>(1) + begin, count);
  });
}

void SgdReference(const ReferenceArgs& a) {
  const auto [momentum, decay, nesterov] = a.attrs.as<SgdOptions>();
  const double rate = a.inputs[3][0], grad_scale = a.inputs[4][0];
  for (size_t e = 0; e < a.outputs[0].size(); ++e) {
    const double w = a.inputs[0][e], g = a.inputs[2][e] * grad_scale + decay * w;
    const double m = momentum * a.inputs[1][e] + g;
    a.outputs[0][e] = w - rate * (nesterov ? g + momentum * m : m);
    a.outputs[1][e] = m;
  }
}

constexpr SgdOptions kMomentum = {.momentum = 0.9, .weight_decay = 0.01}, kNegativeMomentum = {.momentum = -0.9};
constexpr SgdOptions kNesterov = {.momentum = 0.9, .weight_decay = 0.01, .nesterov = true};
constexpr SgdOptions kNegativeSgdDecay = {.weight_decay = -0.01};

constexpr OpExample kSgdExamples[] = {
    {.in = "[] [] [] f32[] f32[]", .record = RecordWith<kSgd, kMomentum>, .out = "[]"},
    {.in = "[3,5] [3,5] [3,5] f32[] f32[]", .record = RecordWith<kSgd, kMomentum>, .out = "[3,5]"},
    {.in = "[130,17] [130,17] [130,17] f32[] f32[]", .record = RecordWith<kSgd, kMomentum>},
    {.in = "[130,17] [130,17] [130,17] f32[] f32[]", .record = RecordWith<kSgd, kNesterov>},
    {.in = "[0,3] [0,3] [0,3] f32[] f32[]", .record = RecordWith<kSgd, kMomentum>},
    {.in = "[3] [3] [2] f32[] f32[]",
     .record = RecordWith<kSgd, kMomentum>,
     .error = "w, its states and grad must have one type"},
    {.in = "[3] [3] [3] f32[] f32[1]",
     .record = RecordWith<kSgd, kMomentum>,
     .error = "rate and grad_scale must be f32[]"},
    {.in = "[3] [3] [3] f32[] f32[]",
     .record = RecordWith<kSgd, kNegativeMomentum>,
     .error = "momentum = -0.9, wanted >= 0"},
    {.in = "[3] [3] [3] f32[] f32[]",
     .record = RecordWith<kSgd, kNegativeSgdDecay>,
     .error = "weight_decay = -0.01, wanted >= 0"},
};

}  // namespace

constexpr OpDef kAdamw = {.name = "adamw",
                          .infer = InferAdamW,
                          .outputs = 3,
                          .kernels = {AdamWKernel<float>, AdamWKernel<double>},
                          .cut = Cut::kBoth,
                          .writes = 3,
                          .no_gradient = "a gradient through a write is an error",
                          .reference = AdamWReference,
                          .cost = FlopsPerElement<14>,
                          .attrs = AttrOpsOf<AdamWOptions>(),
                          .examples = kAdamWExamples};

VarList AdamWUpdate(Var w, Var m, Var v, Var grad, Var rate, Var grad_scale, Var step, const AdamWOptions& options) {
  return RecordAll(kAdamw, {w, m, v, grad, rate, grad_scale, step}, Attrs::Of(options));
}

constexpr OpDef kSgd = {.name = "sgd",
                        .infer = InferSgd,
                        .outputs = 2,
                        .kernels = {SgdKernel<float>, SgdKernel<double>},
                        .cut = Cut::kBoth,
                        .writes = 2,
                        .no_gradient = "a gradient through a write is an error",
                        .reference = SgdReference,
                        .cost = FlopsPerElement<7>,
                        .attrs = AttrOpsOf<SgdOptions>(),
                        .examples = kSgdExamples};

VarList SgdUpdate(Var w, Var m, Var grad, Var rate, Var grad_scale, const SgdOptions& options) {
  return RecordAll(kSgd, {w, m, grad, rate, grad_scale}, Attrs::Of(options));
}

}  // namespace weft
