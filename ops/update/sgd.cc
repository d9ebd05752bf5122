// One update of SGD with momentum, as PyTorch's with dampening 0:
//   g = grad · grad_scale + decay·w;  m ← momentum·m + g;  w ← w - rate·m, or Nesterov's w - rate·(g + momentum·m)
// Inputs w, m and grad have one type; rate and grad_scale are f32 []. If grad_scale is not finite, nothing changes.
#include <cmath>
#include <cstring>

#include "weft/core/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/kernels/elementwise.h"
#include "weft/ops/kernels/rows.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

struct SgdAttrs {
  double momentum = 0, weight_decay = 0;
  bool nesterov = false;
  auto Fields() const {
    return std::tuple{AttrField{"momentum", momentum}, AttrField{"weight_decay", weight_decay},
                      AttrField{"nesterov", nesterov}};
  }
};

absl::StatusOr<Types> Infer(const Attrs& attrs, TypeSpan in) {
  if (in[1] != in[0] || in[2] != in[0]) return ShapeError("sgd", "w, m and grad must have one type", in);
  const TensorType scalar = {kF32, {}};
  if (in[3] != scalar || in[4] != scalar) return ShapeError("sgd", "rate and grad_scale must be f32[]", in);
  const auto [momentum, decay, nesterov] = attrs.as<SgdAttrs>();
  if (!(momentum >= 0)) return ShapeError("sgd", absl::StrCat("momentum = ", momentum, ", wanted >= 0"), in);
  if (!(decay >= 0)) return ShapeError("sgd", absl::StrCat("weight_decay = ", decay, ", wanted >= 0"), in);
  return Types{in[0], in[0]};
}

template <class T>
void Kernel(const KernelArgs& a, Rect tile) {
  const auto options = a.attrs.as<SgdAttrs>();
  const SgdStep<T> step = {.grad_scale = static_cast<T>(*a.input<float>(4)),
                           .weight_decay = static_cast<T>(options.weight_decay),
                           .momentum = static_cast<T>(options.momentum),
                           .rate = static_cast<T>(*a.input<float>(3)),
                           .nesterov = options.nesterov};
  const bool update = std::isfinite(*a.input<float>(4));
  ForInnerLoops(a.output_shape(0), tile, [&](int64_t begin, int64_t count) {
    if (update) {
      Rows<T>().sgd(step, a.input<T>(0) + begin, a.input<T>(1) + begin, a.input<T>(2) + begin, a.output<T>(0) + begin,
                    a.output<T>(1) + begin, count);
      return;
    }
    for (int i = 0; i < 2; ++i) std::memmove(a.output<T>(i) + begin, a.input<T>(i) + begin, count * sizeof(T));
  });
}

void Reference(const ReferenceArgs& a) {
  const auto [momentum, decay, nesterov] = a.attrs.as<SgdAttrs>();
  const double rate = a.inputs[3][0], grad_scale = a.inputs[4][0];
  for (size_t e = 0; e < a.outputs[0].size(); ++e) {
    const double w = a.inputs[0][e], g = a.inputs[2][e] * grad_scale + decay * w;
    const double m = momentum * a.inputs[1][e] + g;
    a.outputs[0][e] = w - rate * (nesterov ? g + momentum * m : m);
    a.outputs[1][e] = m;
  }
}

VarList Update(VarSpan in, const SgdOptions& options) { return SgdUpdate(in[0], in[1], in[2], in[3], in[4], options); }
VarList Example(VarSpan in) { return Update(in, {.momentum = 0.9, .weight_decay = 0.01}); }
VarList NesterovExample(VarSpan in) { return Update(in, {.momentum = 0.9, .weight_decay = 0.01, .nesterov = true}); }

constexpr OpExample kExamples[] = {
    {.in = "[] [] [] f32[] f32[]", .record = Example, .out = "[]"},
    {.in = "[3,5] [3,5] [3,5] f32[] f32[]", .record = Example, .out = "[3,5]"},
    {.in = "[130,17] [130,17] [130,17] f32[] f32[]", .record = Example},
    {.in = "[130,17] [130,17] [130,17] f32[] f32[]", .record = NesterovExample},
    {.in = "[0,3] [0,3] [0,3] f32[] f32[]", .record = Example},
    {.in = "[3] [3] [2] f32[] f32[]", .record = Example, .error = "w, m and grad must have one type"},
    {.in = "[3] [3] [3] f32[] f32[1]", .record = Example, .error = "rate and grad_scale must be f32[]"},
    {.in = "[3] [3] [3] f32[] f32[]",
     .record = [](VarSpan in) { return Update(in, {.momentum = -0.9}); },
     .error = "momentum = -0.9, wanted >= 0"},
    {.in = "[3] [3] [3] f32[] f32[]",
     .record = [](VarSpan in) { return Update(in, {.weight_decay = -0.01}); },
     .error = "weight_decay = -0.01, wanted >= 0"},
};

}  // namespace

constexpr OpDef kSgd = {.name = "sgd",
                        .infer = Infer,
                        .outputs = 2,
                        .kernels = {Kernel<float>, Kernel<double>},
                        .cut = Cut::kBoth,
                        .writes = 2,
                        .no_gradient = "a gradient through a write is an error",
                        .reference = Reference,
                        .cost = FlopsPerElement<7>,
                        .attrs = AttrOpsOf<SgdAttrs>(),
                        .examples = kExamples};

VarList SgdUpdate(Var w, Var m, Var grad, Var rate, Var grad_scale, const SgdOptions& options) {
  const SgdAttrs attrs = {options.momentum, options.weight_decay, options.nesterov};
  return RecordAll(kSgd, {w, m, grad, rate, grad_scale}, Attrs::Of(attrs));
}

}  // namespace weft
