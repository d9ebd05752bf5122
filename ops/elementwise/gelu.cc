// gelu computes y = x · Φ(x), where Φ is the standard normal distribution function (Hendrycks and Gimpel, 2016). Φ is
// computed by erf or approximated by tanh. The op gelu_gradient computes dx = dy · gelu'(x), and is differentiated
// through its elementary spelling.
#include "weft/base/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/attributes.h"
#include "weft/ops/kernels/rows/elementwise.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

struct GeluAttrs {
  GeluForm form = GeluForm::kErf;
  auto Fields() const { return std::tuple{AttrField{"form", form}}; }
};

bool ByTanh(const Attrs& attrs) { return attrs.as<GeluAttrs>().form == GeluForm::kTanh; }

template <class T>
void Kernel(const KernelArgs& a, Rect tile) {
  ByTanh(a.attrs) ? UnaryKernel<T, UnaryFunction::kGeluTanh>(a, tile)
                  : UnaryKernel<T, UnaryFunction::kGeluErf>(a, tile);
}

VarList Gradient(const GradientArgs& a) { return {Record(kGeluGradient, {a.input(0), a.grad(0)}, a.attrs)}; }

// x/2 · (1 + erf(x/√2)), or x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³))).
VarList Elementary(const Attrs& attrs, VarSpan in) {
  const Var x = in[0];
  if (!ByTanh(attrs)) return {x * 0.5 * (1 + Erf(x * 0.70710678118654752440))};
  return {x * 0.5 * (1 + Tanh((x + x * x * x * 0.044715) * 0.79788456080286535588))};
}

constexpr OpExample kExamples[] = {
    {.in = "[]", .record = RecordCall<Gelu, GeluForm::kErf>},
    {.in = "[3,37]", .record = RecordCall<Gelu, GeluForm::kErf>, .low = -3, .high = 3},
    {.in = "[257]", .record = RecordCall<Gelu, GeluForm::kErf>, .low = -30, .high = 30},
    {.in = "[0,3]", .record = RecordCall<Gelu, GeluForm::kErf>},
    {.in = "[]", .record = RecordCall<Gelu, GeluForm::kTanh>},
    {.in = "[3,37]", .record = RecordCall<Gelu, GeluForm::kTanh>, .low = -3, .high = 3},
    {.in = "[257]", .record = RecordCall<Gelu, GeluForm::kTanh>, .low = -30, .high = 30},
    {.in = "i32[2]", .record = RecordCall<Gelu, GeluForm::kTanh>, .error = "not defined for i32"},
};

absl::StatusOr<Types> InferGradient(const Attrs&, TypeSpan in) {
  if (in[0] != in[1]) return ShapeError("gelu_gradient", "types differ", in);
  return Types{in[0]};
}

template <class T>
void GradientKernel(const KernelArgs& a, Rect tile) {
  ByTanh(a.attrs) ? BinaryKernel<T, BinaryFunction::kGeluTanhGradient>(a, tile)
                  : BinaryKernel<T, BinaryFunction::kGeluErfGradient>(a, tile);
}

// erf: dy · (Φ(x) + x · exp(-x²/2) / √(2π)).
// tanh: with t = tanh(u), u = √(2/π) · (x + 0.044715 x³): dy · ((1 + t)/2 + x/2 · (1 - t²) · du/dx).
VarList ElementaryGradient(const Attrs& attrs, VarSpan in) {
  const Var x = in[0], dy = in[1], square = x * x;
  if (!ByTanh(attrs)) {
    const Var distribution = (1 + Erf(x * 0.70710678118654752440)) * 0.5;
    return {dy * (distribution + x * Exp(square * -0.5) * 0.39894228040143267794)};
  }
  const double scale = 0.79788456080286535588;
  const Var t = Tanh((x + square * x * 0.044715) * scale), slope = (1 + square * (3 * 0.044715)) * scale;
  return {dy * 0.5 * (1 + t + x * (1 - t * t) * slope)};
}

Var GeluGradient(Var x, Var dy, GeluForm form) { return Record(kGeluGradient, {x, dy}, Attrs::Of(GeluAttrs{form})); }

constexpr OpExample kGradientExamples[] = {
    {.in = "[] []", .record = RecordCall<GeluGradient, GeluForm::kErf>},
    {.in = "[3,37] [3,37]", .record = RecordCall<GeluGradient, GeluForm::kErf>, .low = -3, .high = 3},
    {.in = "[257] [257]", .record = RecordCall<GeluGradient, GeluForm::kErf>, .low = -30, .high = 30},
    {.in = "[0,3] [0,3]", .record = RecordCall<GeluGradient, GeluForm::kErf>},
    {.in = "[] []", .record = RecordCall<GeluGradient, GeluForm::kTanh>},
    {.in = "[3,37] [3,37]", .record = RecordCall<GeluGradient, GeluForm::kTanh>, .low = -3, .high = 3},
    {.in = "[257] [257]",
     .record = RecordCall<GeluGradient, GeluForm::kTanh>,
     .low = -30,
     .high = 30,
     .tolerance = 2e-5},  // 1 - t² loses digits, and dy reaches 30
    {.in = "[3] [2]", .record = RecordCall<GeluGradient, GeluForm::kTanh>, .error = "types differ"},
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

constexpr OpDef kGeluGradient = {.name = "gelu_gradient",
                                 .infer = InferGradient,
                                 .kernels = {GradientKernel<float>, GradientKernel<double>, GradientKernel<BF16>},
                                 .cut = Cut::kBoth,
                                 .in_place = 1,
                                 .elementary = ElementaryGradient,
                                 .cost = FlopsPerElement<50>,
                                 .attrs = AttrOpsOf<GeluAttrs>(),
                                 .examples = kGradientExamples};

}  // namespace weft
