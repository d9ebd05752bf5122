// Defines the elementwise functions of one input.
//
// The kernel of each op is a function of ops/kernels/rows/rows.h. Each OpDef also gives a reference in double
// arithmetic, the gradient, cost and examples. Functions that are composed of other ops follow at the end.
#include <algorithm>
#include <cmath>

#include "weft/base/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/attributes.h"
#include "weft/ops/kernels/rows/elementwise.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

// Fills in the OpDef's fields that all ops of this file except scale share.
template <UnaryFunction function, double (*reference)(double)>
constexpr OpDef Unary(OpDef row) {
  row.infer = InferSame;
  row.kernels = kUnaryKernels<function>;
  row.cut = Cut::kBoth;
  row.in_place = 0;
  row.reference = UnaryReference<reference>;
  return row;
}

// Returns examples that suit every function of one input, with inputs in [low, high), followed by `special`.
template <size_t n>
constexpr std::array<OpExample, n + 4> Examples(double low, double high, const OpExample (&special)[n]) {
  std::array<OpExample, n + 4> examples = {{{.in = "[]", .low = low, .high = high},
                                            {.in = "[3,37]", .low = low, .high = high},
                                            {.in = "[0,4]"},
                                            {.in = "i32[2]", .error = "not defined for i32"}}};
  std::copy(special, special + n, examples.begin() + 4);
  return examples;
}

constexpr auto kExpExamples = Examples(
    -3, 3,
    {{.in = "[301]", .low = -110, .high = 88, .check_gradient = false},      // finite differences are too coarse here
     {.in = "[33]", .low = -1e30, .high = -1e3, .check_gradient = false}});  // x + delta rounds to x
constexpr auto kLogExamples = Examples(
    0.1, 3,
    {{.in = "[33]", .low = 1, .high = 1e30, .check_gradient = false},  // the gradient, 1e-30, is below the tolerance
     {.in = "[33]", .low = 2e-38, .high = 1e-36, .check_gradient = false}});  // x - delta would leave the domain
constexpr auto kSqrtExamples = Examples(
    0.1, 3, {{.in = "[33]", .low = 0, .high = 1e-36, .check_gradient = false}});  // x - delta would leave the domain
constexpr auto kErfExamples =
    Examples(-3, 3, {{.in = "[257]", .low = -6, .high = 6}, {.in = "[33]", .low = -1e10, .high = 1e10}});
constexpr auto kTanhExamples = Examples(-3, 3, {{.in = "[65]", .low = -100, .high = 100}});
constexpr auto kSigmoidExamples = Examples(-8, 8, {{.in = "[65]", .low = -200, .high = 200}});
constexpr auto kSoftplusExamples = Examples(
    -3, 3,
    {{.in = "[301]", .low = -100, .high = 100, .check_gradient = false},     // finite differences are too coarse here
     {.in = "[33]", .low = -1e30, .high = 1e30, .check_gradient = false}});  // x + delta rounds to x
constexpr auto kReluExamples = Examples(  // gradients on either side of the kink, where a finite difference is wrong
    0.1, 1, {{.in = "[3,37]", .low = -1, .high = -0.1}, {.in = "[5,17]", .check_gradient = false}});
constexpr auto kAbsExamples =
    Examples(-1, 1,
             {{.in = "[33]", .low = -1e30, .high = 1e30, .check_gradient = false},  // x + delta rounds to x
              {.in = "bool[2]", .error = "not defined for bool"}});

template <class T>
void ScaleKernel(const KernelArgs& a, Rect tile) {
  const Computed<T> factor = static_cast<Computed<T>>(a.attrs.as<ScaleAttrs>().factor);
  ForInnerLoops(a.output_shape(0), tile, [&](int64_t begin, int64_t n) {
    Maps<T>().scale(a.input<T>(0) + begin, factor, a.output<T>(0) + begin, n);
  });
}

// dx = factor · dy.
VarList ScaleGradient(const GradientArgs& a) { return {Scale(a.grad(0), a.attrs.as<ScaleAttrs>().factor)}; }

void ScaleReference(const ReferenceArgs& a) {
  const double factor = a.attrs.as<ScaleAttrs>().factor;
  for (size_t i = 0; i < a.outputs[0].size(); ++i) a.outputs[0][i] = factor * a.inputs[0][i];
}

constexpr OpExample kScaleExamples[] = {
    {.in = "[]", .record = [](VarSpan in) { return VarList{Scale(in[0], 2)}; }},
    {.in = "[3,37]", .record = [](VarSpan in) { return VarList{Scale(in[0], -0.3)}; }},
    {.in = "[19]", .record = [](VarSpan in) { return VarList{Scale(in[0], 0)}; }},
    {.in = "[0,4]", .record = [](VarSpan in) { return VarList{-in[0]}; }},
    {.in = "i32[2]", .record = [](VarSpan in) { return VarList{Scale(in[0], 2)}; }, .error = "not defined for i32"},
};

}  // namespace

constexpr OpDef kExp = Unary<UnaryFunction::kExp, [](double x) { return std::exp(x); }>({
    .name = "exp",
    .gradient = [](const GradientArgs& a) { return VarList{a.grad(0) * a.output(0)}; },  // dx = dy · y
    .cost = FlopsPerElement<8>,
    .examples = kExpExamples,
});
Var Exp(Var x) { return Record(kExp, {x}); }

constexpr OpDef kLog = Unary<UnaryFunction::kLog, [](double x) { return std::log(x); }>({
    .name = "log",
    .gradient = [](const GradientArgs& a) { return VarList{a.grad(0) / a.input(0)}; },  // dx = dy / x
    .cost = FlopsPerElement<8>,
    .examples = kLogExamples,
});
Var Log(Var x) { return Record(kLog, {x}); }

constexpr OpDef kSqrt = Unary<UnaryFunction::kSqrt, [](double x) { return std::sqrt(x); }>({
    .name = "sqrt",
    .gradient = [](const GradientArgs& a) { return VarList{Scale(a.grad(0), 0.5) / a.output(0)}; },  // dx = dy / (2y)
    .cost = FlopsPerElement<4>,
    .examples = kSqrtExamples,
});
Var Sqrt(Var x) { return Record(kSqrt, {x}); }

constexpr OpDef kErf = Unary<UnaryFunction::kErf, [](double x) { return std::erf(x); }>({
    .name = "erf",
    .gradient =
        [](const GradientArgs& a) {  // dx = dy · 2/√π · exp(-x²)
          const Var x = a.input(0);
          return VarList{a.grad(0) * Scale(Exp(-(x * x)), 1.12837916709551257390)};
        },
    .cost = FlopsPerElement<30>,
    .examples = kErfExamples,
});
Var Erf(Var x) { return Record(kErf, {x}); }

constexpr OpDef kTanh = Unary<UnaryFunction::kTanh, [](double x) { return std::tanh(x); }>({
    .name = "tanh",
    .gradient =
        [](const GradientArgs& a) {  // dx = dy · (1 - y²)
          const Var y = a.output(0);
          return VarList{a.grad(0) * (1 - y * y)};
        },
    .cost = FlopsPerElement<12>,
    .examples = kTanhExamples,
});
Var Tanh(Var x) { return Record(kTanh, {x}); }

constexpr OpDef kSigmoid = Unary<UnaryFunction::kSigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }>({
    .name = "sigmoid",
    .gradient =
        [](const GradientArgs& a) {  // dx = dy · y · (1 - y)
          const Var y = a.output(0);
          return VarList{a.grad(0) * y * (1 - y)};
        },
    .autocast = Autocast::kFollow,
    .cost = FlopsPerElement<12>,
    .examples = kSigmoidExamples,
});
Var Sigmoid(Var x) { return Record(kSigmoid, {x}); }

constexpr OpDef kSoftplus =
    Unary<UnaryFunction::kSoftplus, [](double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }>({
        .name = "softplus",
        .gradient = [](const GradientArgs& a) { return VarList{a.grad(0) * Sigmoid(a.input(0))}; },
        .cost = FlopsPerElement<24>,
        .examples = kSoftplusExamples,
    });
Var Softplus(Var x) { return Record(kSoftplus, {x}); }

constexpr OpDef kRelu = Unary<UnaryFunction::kRelu, [](double x) { return x < 0 ? 0 : x; }>({
    .name = "relu",
    .gradient =
        [](const GradientArgs& a) {  // dx = dy where y is not 0
          const Var y = a.output(0);
          return VarList{MaskFill(a.grad(0), Equal(y, Number(y, 0)), 0)};
        },
    .autocast = Autocast::kFollow,
    .cost = FlopsPerElement<1>,
    .examples = kReluExamples,
});
Var Relu(Var x) { return Record(kRelu, {x}); }

constexpr OpDef kAbs = Unary<UnaryFunction::kAbs, [](double x) { return std::abs(x); }>({
    .name = "abs",
    .gradient = [](const GradientArgs& a) { return VarList{a.grad(0) * Sign(a.input(0))}; },  // 0 at 0
    .autocast = Autocast::kFollow,
    .examples = kAbsExamples,
});
Var Abs(Var x) { return x.dtype() == kI32 ? Maximum(x, -x) : Record(kAbs, {x}); }

constexpr OpDef kScale = {.name = "scale",
                          .infer = InferSame,
                          .kernels = {ScaleKernel<float>, ScaleKernel<double>, ScaleKernel<BF16>},
                          .cut = Cut::kBoth,
                          .in_place = 0,
                          .gradient = ScaleGradient,
                          .reference = ScaleReference,
                          .autocast = Autocast::kFollow,
                          .attrs = AttrOpsOf<ScaleAttrs>(),
                          .examples = kScaleExamples};
Var Scale(Var x, double factor) { return Record(kScale, {x}, Attrs::Of(ScaleAttrs{factor})); }

Var Neg(Var x) {
  return Composite("neg", {x}, [&] { return x.dtype() == kI32 ? FillLike(x, 0) - x : Scale(x, -1); });
}

Var Sign(Var x) {
  return Composite("sign", {x}, [&] {
    const Var zero = Number(x, 0);
    return Cast(Greater(x, zero), x.dtype()) - Cast(Less(x, zero), x.dtype());
  });
}

Var Square(Var x) {
  return Composite("square", {x}, [&] { return x * x; });
}

Var Rsqrt(Var x) {
  return Composite("rsqrt", {x}, [&] { return 1 / Sqrt(x); });
}

Var Silu(Var x) {
  return Composite("silu", {x}, [&] { return x * Sigmoid(x); });
}

Var Clamp(Var x, double low, double high) {
  return Composite("clamp", {x}, [&] { return Minimum(Maximum(x, Number(x, low)), Number(x, high)); });
}

Var Pow(Var x, double exponent) {
  return Composite("pow", {x}, [&] {
    if (exponent == 2) return x * x;
    if (exponent == 3) return x * x * x;
    if (exponent == 0.5) return Sqrt(x);
    if (exponent == -1 && x.dtype() != kI32) return 1 / x;
    return Pow(x, Number(x, exponent));
  });
}

}  // namespace weft
