// Records ONNX's elementwise ops, reductions, running sums and searches.
#include <limits>
#include <numbers>

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
  const Var down = Floor(x), rest = x - down, half = Number(x, 0.5), odd = NotEqual(Floor(down / 2) * 2, down);
  return Where(Or(Greater(rest, half), And(Equal(rest, half), odd)), down + 1, down);
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
  if (x.dtype() != kI32) {  // in f64, because a rounded quotient may be the next integer
    const Var a = Cast(x, kF64), b = Cast(y, kF64), ratio = a / b, zero = Number(ratio, 0);
    const Var whole = Where(Less(ratio, zero), -Floor(-ratio), Floor(ratio));
    return VarList{Cast(Where(Equal(whole, zero), a, a - b * whole), x.dtype())};
  }
  const Var rest = x - y * (x / y);
  if (of_dividend) return VarList{rest};
  const Var zero = Number(rest, 0), differ = Xor(Less(rest, zero), Less(y, zero));
  return VarList{Where(And(NotEqual(rest, zero), differ), rest + y, rest)};
}

OnnxResult CastOf(const OnnxNode& node) {
  const int64_t to = node.input_count() > 1 ? node.type(1) : node.Int("to", 0);
  if (to == 0 && node.has(1)) return VarList{Cast(node.in(0), node.in(1).dtype())};  // the type of a computed value
  WEFT_ASSIGN_OR_RETURN(const OnnxElement element, OnnxElementOf(to));
  return VarList{WrapTo(Cast(node.in(0), element.dtype), element.type)};
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

// The operand of a reduction, and its axes. A node without axes reduces all of them or, with the attribute
// noop_with_empty_axes, none.
struct Reduced {
  Var x;
  std::vector<int> axes;
  bool keep;
};
absl::StatusOr<Reduced> ReducedOf(const OnnxNode& node) {
  Reduced r = {.x = node.in(0), .axes = {}, .keep = node.Int("keepdims", 1) != 0};
  WEFT_ASSIGN_OR_RETURN(r.axes, node.Axes(r.x.shape().rank()));
  const bool all = node.Int("noop_with_empty_axes", 0) == 0;
  if (r.axes.empty() && all) r.axes = Sequence(0, r.x.shape().rank());
  return r;
}

template <Var (*reduce)(Var, AxisSpan, bool)>
OnnxResult Reduce(const OnnxNode& node) {
  WEFT_ASSIGN_OR_RETURN(const Reduced r, ReducedOf(node));
  if (r.x.dtype() == kI32) return VarList{Cast(reduce(Cast(r.x, kF64), r.axes, r.keep), kI32)};
  return VarList{reduce(r.x, r.axes, r.keep)};
}
Var SumSquare(Var x, AxisSpan axes, bool keep) { return Sum(Square(x), axes, keep); }
Var LogSum(Var x, AxisSpan axes, bool keep) { return Log(Sum(x, axes, keep)); }
Var L1(Var x, AxisSpan axes, bool keep) { return Norm(x, axes, 1, keep); }
Var L2(Var x, AxisSpan axes, bool keep) { return Norm(x, axes, 2, keep); }

// Records a maximum or minimum, also of integers and bools. If x has no elements, the maximum is -∞ and the minimum is
// ∞.
template <Var (*reduce)(Var, AxisSpan, bool), bool max>
OnnxResult Extreme(const OnnxNode& node) {
  WEFT_ASSIGN_OR_RETURN(const Reduced r, ReducedOf(node));
  if (!IsFloat(r.x.dtype())) return VarList{Cast(reduce(Cast(r.x, kF64), r.axes, r.keep), r.x.dtype())};
  if (r.x.shape().elements() == 0) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    return VarList{FillLike(Sum(r.x, r.axes, r.keep), max ? -kInfinity : kInfinity)};
  }
  return VarList{reduce(r.x, r.axes, r.keep)};
}
OnnxResult CumSum(const OnnxNode& node) {
  WEFT_ASSIGN_OR_RETURN(const double along, node.Number(1));
  WEFT_ASSIGN_OR_RETURN(const int axis, node.Axis(static_cast<int64_t>(along), node.in(0).shape().rank()));
  const bool reverse = node.Int("reverse", 0) != 0;
  Var y = CumulativeSum(Transpose(node.in(0), axis, -1), reverse);
  const int64_t n = y.dim(-1);
  if (node.Int("exclusive", 0) != 0) {  // sums of the elements before each one, or after it if reversed
    y = reverse ? Slice(Pad(y, -1, 0, 1), -1, 1, n + 1) : Slice(Pad(y, -1, 1, 0), -1, 0, n);
  }
  return VarList{Transpose(y, axis, -1)};
}

template <bool max>
OnnxResult ArgExtreme(const OnnxNode& node) {
  WEFT_ASSIGN_OR_RETURN(const int axis, node.AxisOf(node.in(0), 0));
  const bool last = node.Int("select_last_index", 0) != 0;
  const Var moved = Transpose(InFloats(node.in(0)), axis, -1), rows = max ? moved : -moved;
  Var at = ArgMax(last ? Flip(rows, -1) : rows);
  if (last) at = Number(at, static_cast<double>(rows.dim(-1) - 1)) - at;
  const Var kept = Transpose(Unsqueeze(at, -1), axis, -1);
  return VarList{node.Int("keepdims", 1) != 0 ? kept : Squeeze(kept, {axis})};
}

OnnxResult TopKOf(const OnnxNode& node) {
  WEFT_ASSIGN_OR_RETURN(const int axis, node.AxisOf(node.in(0), -1));
  WEFT_ASSIGN_OR_RETURN(const double k, node.Number(1));
  const bool largest = node.Int("largest", 1) != 0;
  const Var rows = Transpose(node.in(0), axis, -1);
  VarList y = TopK(largest ? rows : -rows, static_cast<int64_t>(k));
  if (!largest) y[0] = -y[0];
  return VarList{Transpose(y[0], axis, -1), Transpose(y[1], axis, -1)};
}

constexpr OnnxOp kOps[] = {
    {"Abs", Unary<Abs>, OnnxIntegers::kWraps},
    {"Add", Binary<Add>, OnnxIntegers::kWraps},
    {"And", Binary<And>},
    {"ArgMax", ArgExtreme<true>},
    {"ArgMin", ArgExtreme<false>},
    {"Cast", CastOf},
    {"CastLike", CastOf, OnnxIntegers::kLike},
    {"Ceil", Rounded<Ceil>},
    {"Clip", Clip, OnnxIntegers::kMoves},
    {"Cos", Unary<Cosine>},
    {"CumSum", CumSum, OnnxIntegers::kWraps},
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
    {"ReduceL1", Reduce<L1>},
    {"ReduceL2", Reduce<L2>},
    {"ReduceLogSum", Reduce<LogSum>},
    {"ReduceLogSumExp", Reduce<LogSumExp>},
    {"ReduceMax", Extreme<Max, true>, OnnxIntegers::kMoves},
    {"ReduceMean", Reduce<Mean>},
    {"ReduceMin", Extreme<Min, false>, OnnxIntegers::kMoves},
    {"ReduceProd", Reduce<Prod>, OnnxIntegers::kWraps},
    {"ReduceSum", Reduce<Sum>, OnnxIntegers::kWraps},
    {"ReduceSumSquare", Reduce<SumSquare>},
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
    {"TopK", TopKOf},
    {"Where", WhereOf, OnnxIntegers::kMoves},
    {"Xor", Binary<Xor>},
};

}  // namespace

absl::Span<const OnnxOp> OnnxArithmetic() { return kOps; }

}  // namespace weft
