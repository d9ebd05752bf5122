// dx = dy · d gelu(x) / dx. The gradient of this op is that of its elementary spelling.
#include "weft/core/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/elementwise/gelu.h"
#include "weft/ops/kernels/elementwise.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

absl::StatusOr<Types> Infer(const Attrs&, TypeSpan in) {
  if (in[0] != in[1]) return ShapeError("gelu_gradient", "types differ", in);
  return Types{in[0]};
}

template <class T>
void Kernel(const KernelArgs& a, Rect tile) {
  const bool tanh = a.attrs.as<GeluAttrs>().form == GeluForm::kTanh;
  tanh ? BinaryKernel<T, BinaryFunction::kGeluTanhGradient>(a, tile)
       : BinaryKernel<T, BinaryFunction::kGeluErfGradient>(a, tile);
}

// erf form: dy · (Φ(x) + x · exp(-x²/2) / √(2π)).
// tanh form: dy · ((1 + t)/2 + x/2 · (1 - t²) · du/dx), where t = tanh(u), u = √(2/π) · (x + 0.044715 x³).
VarList Elementary(const Attrs& attrs, VarSpan in) {
  const Var x = in[0], dy = in[1], square = x * x;
  if (attrs.as<GeluAttrs>().form == GeluForm::kErf) {
    const Var distribution = (1 + Erf(x * 0.70710678118654752440)) * 0.5;
    return {dy * (distribution + x * Exp(square * -0.5) * 0.39894228040143267794)};
  }
  const double scale = 0.79788456080286535588;
  const Var t = Tanh((x + square * x * 0.044715) * scale), slope = (1 + square * (3 * 0.044715)) * scale;
  return {dy * 0.5 * (1 + t + x * (1 - t * t) * slope)};
}

Var GeluGradient(Var x, Var dy, GeluForm form) { return Record(kGeluGradient, {x, dy}, Attrs::Of(GeluAttrs{form})); }

constexpr OpExample kExamples[] = {
    {.in = "[] []", .record = [](VarSpan in) { return VarList{GeluGradient(in[0], in[1], GeluForm::kErf)}; }},
    {.in = "[3,37] [3,37]",
     .record = [](VarSpan in) { return VarList{GeluGradient(in[0], in[1], GeluForm::kErf)}; },
     .low = -3,
     .high = 3},
    {.in = "[257] [257]",
     .record = [](VarSpan in) { return VarList{GeluGradient(in[0], in[1], GeluForm::kErf)}; },
     .low = -30,
     .high = 30},
    {.in = "[0,3] [0,3]", .record = [](VarSpan in) { return VarList{GeluGradient(in[0], in[1], GeluForm::kErf)}; }},
    {.in = "[] []", .record = [](VarSpan in) { return VarList{GeluGradient(in[0], in[1], GeluForm::kTanh)}; }},
    {.in = "[3,37] [3,37]",
     .record = [](VarSpan in) { return VarList{GeluGradient(in[0], in[1], GeluForm::kTanh)}; },
     .low = -3,
     .high = 3},
    {.in = "[257] [257]",
     .record = [](VarSpan in) { return VarList{GeluGradient(in[0], in[1], GeluForm::kTanh)}; },
     .low = -30,
     .high = 30,
     .tolerance = 2e-5},  // 1 - t² loses digits, and dy reaches 30
    {.in = "[3] [2]",
     .record = [](VarSpan in) { return VarList{GeluGradient(in[0], in[1], GeluForm::kTanh)}; },
     .error = "types differ"},
};

}  // namespace

constexpr OpDef kGeluGradient = {.name = "gelu_gradient",
                                 .infer = Infer,
                                 .kernels = {Kernel<float>, Kernel<double>, Kernel<BF16>},
                                 .cut = Cut::kBoth,
                                 .in_place = 1,
                                 .elementary = Elementary,
                                 .cost = FlopsPerElement<50>,
                                 .attrs = AttrOpsOf<GeluAttrs>(),
                                 .examples = kExamples};

}  // namespace weft
