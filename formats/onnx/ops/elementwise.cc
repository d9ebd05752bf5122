// Records ONNX's elementwise ops.
#include <limits>
#include <numbers>
#include <utility>

#include "weft/formats/onnx/onnx_node.h"

namespace weft {
namespace {

// Combines all inputs from left to right.
template <Var (*function)(Var, Var)>
Var Fold(const OnnxNode& node) {
  Var y = node.in(0);
  for (size_t i = 1; i < node.input_count(); ++i) y = function(y, node.in(i));
  return y;
}
template <Var (*function)(Var, Var)>
OnnxResult Variadic(const OnnxNode& node) {
  return VarList{Fold<function>(node)};
}

Var Reciprocal(Var x) { return 1 / x; }
Var Softsign(Var x) { return x / (1 + Abs(x)); }
Var HardSwish(Var x) { return x * Clamp(x / 6 + 0.5, 0, 1); }
Var Mish(Var x) { return x * Tanh(Softplus(x)); }
Var ExpM1(Var x, double alpha) { return alpha * (Exp(Minimum(x, Number(x, 0))) - 1); }

// The result has the base's type.
OnnxResult PowOf(const OnnxNode& node) {
  const Var base = node.in(0), exponent = node.in(1);
  if (base.dtype() == exponent.dtype() && IsFloat(base.dtype())) return VarList{Pow(base, exponent)};
  return VarList{Cast(Pow(Cast(base, kF64), Cast(exponent, kF64)), base.dtype())};
}

OnnxResult Clip(const OnnxNode& node) {
  Var y = node.in(0);
  if (node.has(1)) y = Maximum(y, node.in(1));
  if (node.has(2)) y = Minimum(y, node.in(2));
  return VarList{y};
}

// Returns the largest integer <= x. Beyond 2^30, all numbers of f32 and bf16 are integers.
Var Floor(Var x) {
  const Var inside = MaskFill(x, GreaterEqual(Abs(x), Number(x, 0x1p30)), 0);
  const Var whole = Cast(Cast(inside, kI32), x.dtype());
  const Var floor = whole - Cast(Greater(whole, inside), x.dtype());
  return Where(LessEqual(Abs(x), Number(x, 0x1p30)), floor, x);
}
Var Ceil(Var x) { return -Floor(-x); }
// Ties go to the even integer.
Var Round(Var x) {
  const Var up = Floor(x + 0.5), odd = NotEqual(Floor(up / 2) * 2, up);
  return Where(And(Equal(up - x, Number(x, 0.5)), odd), up - 1, up);
}
template <Var (*function)(Var)>
OnnxResult Rounded(const OnnxNode& node) {
  if (node.in(0).dtype() == kF64) return absl::UnimplementedError("rounding of f64");
  return VarList{function(node.in(0))};
}

// Returns sin(x + 2π · `turns`): with t, the distance of the angle from the nearest multiple of 2π, in [-π, π], the sum
// of t^k / k! · (±1) to k = 27, in f64. The first term that is left out is below 1e-16.
Var SineOf(Var x, double turns) {
  const Var all = Cast(x, kF64) * (0.5 / std::numbers::pi) + turns;
  const Var nearest =
      Cast(Cast(all + Where(Less(all, Number(all, 0)), Number(all, -0.5), Number(all, 0.5)), kI32), kF64);
  const Var angle = (all - nearest) * (2 * std::numbers::pi), square = Square(angle);
  Var sum = FillLike(angle, 1);
  for (int k = 26; k > 0; k -= 2) sum = 1 - sum * square * (1.0 / (k * (k + 1)));
  return Cast(angle * sum, x.dtype());
}
Var Sine(Var x) { return SineOf(x, 0); }
Var Cosine(Var x) { return SineOf(x, 0.25); }

// The remainder has the divisor's sign or, with the attribute fmod, the dividend's.
OnnxResult Mod(const OnnxNode& node) {
  const Var x = node.in(0), y = node.in(1);
  const bool of_dividend = node.Int("fmod", 0) != 0;
  if (x.dtype() != kI32 && !of_dividend) return VarList{x - y * Floor(x / y)};
  if (x.dtype() != kI32) return VarList{x - y * Cast(Cast(x / y, kI32), x.dtype())};
  const Var rest = x - y * (x / y);
  if (of_dividend) return VarList{rest};
  const Var zero = Number(rest, 0), differ = Xor(Less(rest, zero), Less(y, zero));
  return VarList{Where(And(NotEqual(rest, zero), differ), rest + y, rest)};
}

constexpr std::pair<int, DType> kCasts[] = {
    {onnx::Tensor::FLOAT, kF32},  {onnx::Tensor::FLOAT16, kF32}, {onnx::Tensor::BFLOAT16, kBF16},
    {onnx::Tensor::DOUBLE, kF64}, {onnx::Tensor::BOOL, kBool},   {onnx::Tensor::INT64, kI32},
    {onnx::Tensor::INT32, kI32},  {onnx::Tensor::INT16, kI32},   {onnx::Tensor::INT8, kI32},
    {onnx::Tensor::UINT64, kI32}, {onnx::Tensor::UINT32, kI32},  {onnx::Tensor::UINT16, kI32},
    {onnx::Tensor::UINT8, kI32}};
OnnxResult CastOf(const OnnxNode& node) {
  const int64_t to = node.input_count() > 1 ? node.type(1) : node.Int("to", 0);
  for (const auto& [type, dtype] : kCasts) {
    if (type == to) return VarList{WrapTo(Cast(node.in(0), dtype), type)};
  }
  return absl::UnimplementedError(absl::StrCat("elements of ONNX's type ", to));
}
OnnxResult Identity(const OnnxNode& node) { return VarList{node.in(0)}; }

Var IsInf(Var x) { return Equal(Abs(x), Number(x, std::numeric_limits<double>::infinity())); }
OnnxResult PRelu(const OnnxNode& node) {
  const Var x = node.in(0);
  return VarList{Relu(x) + node.in(1) * Minimum(x, Number(x, 0))};
}
OnnxResult HardSigmoid(const OnnxNode& node) {
  return VarList{Clamp(node.in(0) * node.Float("alpha", 0.2) + node.Float("beta", 0.5), 0, 1)};
}

OnnxResult Elu(const OnnxNode& node) { return VarList{Relu(node.in(0)) + ExpM1(node.in(0), node.Float("alpha", 1))}; }
OnnxResult Selu(const OnnxNode& node) {
  const double alpha = node.Float("alpha", 1.67326319217681884765625), gamma = node.Float("gamma", 1.05070102214813232);
  return VarList{gamma * (Relu(node.in(0)) + ExpM1(node.in(0), alpha))};
}
OnnxResult LeakyRelu(const OnnxNode& node) {
  const Var x = node.in(0);
  return VarList{Relu(x) + node.Float("alpha", 0.01) * Minimum(x, Number(x, 0))};
}
OnnxResult Swish(const OnnxNode& node) { return VarList{node.in(0) * Sigmoid(node.Float("alpha", 1) * node.in(0))}; }
OnnxResult GeluOf(const OnnxNode& node) {
  return VarList{Gelu(node.in(0), node.String("approximate", "none") == "tanh" ? GeluForm::kTanh : GeluForm::kErf)};
}
OnnxResult MeanOf(const OnnxNode& node) { return VarList{Fold<Add>(node) / static_cast<double>(node.input_count())}; }
OnnxResult WhereOf(const OnnxNode& node) { return VarList{Where(node.in(0), node.in(1), node.in(2))}; }

constexpr OnnxOp kOps[] = {
    {"Abs", Unary<Abs>, OnnxIntegers::kWraps},
    {"Add", Binary<Add>, OnnxIntegers::kWraps},
    {"And", Binary<And>},
    {"Cast", CastOf},
    {"CastLike", CastOf},
    {"Ceil", Rounded<Ceil>},
    {"Clip", Clip, OnnxIntegers::kMoves},
    {"Cos", Unary<Cosine>},
    {"Div", Binary<Div>, OnnxIntegers::kWraps},
    {"Elu", Elu},
    {"Equal", Binary<Equal>},
    {"Erf", Unary<Erf>},
    {"Exp", Unary<Exp>},
    {"Floor", Rounded<Floor>},
    {"Gelu", GeluOf},
    {"Greater", Binary<Greater>},
    {"GreaterOrEqual", Binary<GreaterEqual>},
    {"HardSigmoid", HardSigmoid},
    {"HardSwish", Unary<HardSwish>},
    {"Identity", Identity, OnnxIntegers::kMoves},
    {"IsInf", Unary<IsInf>},
    {"IsNaN", Unary<IsNan>},
    {"LeakyRelu", LeakyRelu},
    {"Less", Binary<Less>},
    {"LessOrEqual", Binary<LessEqual>},
    {"Log", Unary<Log>},
    {"Max", Variadic<Maximum>, OnnxIntegers::kMoves},
    {"Mean", MeanOf},
    {"Min", Variadic<Minimum>, OnnxIntegers::kMoves},
    {"Mish", Unary<Mish>},
    {"Mod", Mod, OnnxIntegers::kWraps},
    {"Mul", Binary<Mul>, OnnxIntegers::kWraps},
    {"Neg", Unary<Neg>, OnnxIntegers::kWraps},
    {"Not", Unary<Not>},
    {"Or", Binary<Or>},
    {"PRelu", PRelu},
    {"Pow", PowOf, OnnxIntegers::kWraps},
    {"Reciprocal", Unary<Reciprocal>},
    {"Relu", Unary<Relu>},
    {"Round", Rounded<Round>},
    {"Selu", Selu},
    {"Sigmoid", Unary<Sigmoid>},
    {"Sign", Unary<Sign>},
    {"Sin", Unary<Sine>},
    {"Softplus", Unary<Softplus>},
    {"Softsign", Unary<Softsign>},
    {"Sqrt", Unary<Sqrt>},
    {"Sub", Binary<Sub>, OnnxIntegers::kWraps},
    {"Sum", Variadic<Add>, OnnxIntegers::kWraps},
    {"Swish", Swish},
    {"Tanh", Unary<Tanh>},
    {"Where", WhereOf, OnnxIntegers::kMoves},
    {"Xor", Binary<Xor>},
};

}  // namespace

absl::Span<const OnnxOp> OnnxElementwise() { return kOps; }

}  // namespace weft
