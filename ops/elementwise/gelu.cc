// y = x · Φ(x) (Hendrycks and Gimpel, 2016): exact, by erf, or approximated by tanh.
#include "weft/ops/elementwise/gelu.h"

#include "weft/ops/all_ops.h"
#include "weft/ops/kernels/elementwise.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

template <class T>
void Kernel(const KernelArgs& a, Rect tile) {
  const bool tanh = a.attrs.as<GeluAttrs>().form == GeluForm::kTanh;
  tanh ? UnaryKernel<T, UnaryFunction::kGeluTanh>(a, tile) : UnaryKernel<T, UnaryFunction::kGeluErf>(a, tile);
}

// The gradient is the op gelu_gradient.
VarList Gradient(const GradientArgs& a) { return {Record(kGeluGradient, {a.input(0), a.grad(0)}, a.attrs)}; }

// x/2 · (1 + erf(x/√2)), or x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³))).
VarList Elementary(const Attrs& attrs, VarSpan in) {
  const Var x = in[0];
  if (attrs.as<GeluAttrs>().form == GeluForm::kErf) return {x * 0.5 * (1 + Erf(x * 0.70710678118654752440))};
  return {x * 0.5 * (1 + Tanh((x + x * x * x * 0.044715) * 0.79788456080286535588))};
}

constexpr OpExample kExamples[] = {
    {.in = "[]", .record = [](VarSpan in) { return VarList{Gelu(in[0])}; }},
    {.in = "[3,37]", .record = [](VarSpan in) { return VarList{Gelu(in[0])}; }, .low = -3, .high = 3},
    {.in = "[257]", .record = [](VarSpan in) { return VarList{Gelu(in[0])}; }, .low = -30, .high = 30},
    {.in = "[0,3]", .record = [](VarSpan in) { return VarList{Gelu(in[0])}; }},
    {.in = "[]", .record = [](VarSpan in) { return VarList{Gelu(in[0], GeluForm::kTanh)}; }},
    {.in = "[3,37]", .record = [](VarSpan in) { return VarList{Gelu(in[0], GeluForm::kTanh)}; }, .low = -3, .high = 3},
    {.in = "[257]", .record = [](VarSpan in) { return VarList{Gelu(in[0], GeluForm::kTanh)}; }, .low = -30, .high = 30},
    {.in = "i32[2]",
     .record = [](VarSpan in) { return VarList{Gelu(in[0], GeluForm::kTanh)}; },
     .error = "not defined for i32"},
};

}  // namespace

constexpr OpDef kGelu = {.name = "gelu",
                         .infer = InferSame,
                         .kernels = {Kernel<float>, Kernel<double>, Kernel<BF16>},
                         .cut = Cut::kBoth,
                         .in_place = 0,
                         .gradient = Gradient,
                         .elementary = Elementary,
                         .autocast = Autocast::kFollow,
                         .cost = FlopsPerElement<30>,
                         .attrs = AttrOpsOf<GeluAttrs>(),
                         .examples = kExamples};
Var Gelu(Var x, GeluForm form) { return Record(kGelu, {x}, Attrs::Of(GeluAttrs{form})); }

}  // namespace weft
