#include <algorithm>
#include <cmath>

#include "weft/ops/ops.h"
#include "weft/tests/fuzz/drawing.h"

namespace weft {
namespace {

struct Function {
  Var (*apply)(Var x);
  double (*bound)(double x);
  double domain = 1e3;  // the largest |x|
};

double Same(double x) { return x; }
double One(double) { return 1; }

double MeanFactor(Var x) { return 1.0 / static_cast<double>(std::max<int64_t>(1, x.shape().cols())); }

// Functions that are smooth on their domain.
constexpr Function kSmooth[] = {
    {[](Var x) { return -x; }, Same},
    {[](Var x) { return Scale(x, -0.37); }, Same},
    {[](Var x) { return x * 0.8; }, Same},
    {[](Var x) { return 0.21 - x; }, [](double x) { return x + 1; }},
    {[](Var x) { return Square(x); }, [](double x) { return x * x; }, 20},
    {[](Var x) { return Pow(x, 3); }, [](double x) { return x * x * x; }, 6},
    {[](Var x) { return Pow(Square(x) + 0.3, 0.7); }, [](double x) { return x * x + 1; }, 20},
    {[](Var x) { return Pow(Square(x) + 0.5, -1); }, [](double) { return 2.0; }},
    {[](Var x) { return Exp(x); }, [](double x) { return std::exp(x); }, 3},
    {[](Var x) { return Log(Square(x) + 1.5); }, [](double x) { return std::log(x * x + 1.5); }},
    {[](Var x) { return Sqrt(Square(x) + 0.5); }, [](double x) { return x + 1; }},
    {[](Var x) { return Rsqrt(Square(x) + 0.5); }, [](double) { return 1.5; }},
    {[](Var x) { return 2 / (Square(x) + 1.0); }, [](double) { return 2.0; }},
    {[](Var x) { return Softplus(x); }, [](double x) { return x + 1; }},
    {[](Var x) { return Tanh(x); }, One},
    {[](Var x) { return Erf(x); }, One},
    {[](Var x) { return Sigmoid(x); }, One},
    {[](Var x) { return x * Sigmoid(x); }, Same},
    {[](Var x) { return Silu(x); }, Same},
    {[](Var x) { return Gelu(x); }, Same},
    {[](Var x) { return Gelu(x, GeluForm::kTanh); }, Same},
    {[](Var x) { return Dropout(x, 0.3); }, [](double x) { return x / 0.7; }},
    {[](Var x) { return Add(x, Reshape(Reshape(x, {x.shape().elements()}), x.shape())); },
     [](double x) { return 2 * x; }},
    {[](Var x) {
       return x / GlobalNorm({x, Fill(x.tape, {x.dtype(), {2}}, 1)});
     },
     Same},
    {[](Var x) { return x + CumulativeSum(x * MeanFactor(x), /*reverse=*/true); }, [](double x) { return 2 * x; }},
    {[](Var x) { return CumulativeSum(x * MeanFactor(x)); }, Same},
};
constexpr int kNeedRank = 2;  // how many of them, the last ones, need rank >= 1

constexpr Function kKinked[] = {
    {[](Var x) { return Abs(x); }, Same},
    {[](Var x) { return Relu(x); }, Same},
    {[](Var x) { return Clamp(x, -0.4, 0.9); }, One},
    {[](Var x) { return Maximum(x, -x * 0.3); }, Same},
};

Drawn Apply(Drawing& draw, const Function& function, const Drawn& x) {
  const Drawn inside = draw.Under(x, function.domain);
  return {.var = function.apply(inside.var), .bound = function.bound(inside.bound)};
}

Drawn ApplySmooth(Drawing& draw) {
  const Drawn x = draw.Any();
  const Function& function = draw.OneOf<Function>(kSmooth);
  if (x.shape().rank() == 0 && &function >= std::end(kSmooth) - kNeedRank) return {};
  return Apply(draw, function, x);
}

Drawn ApplyKinked(Drawing& draw) {
  const Drawn x = draw.Any();
  const Drawn apart = draw.Apart(x);
  return Apply(draw, draw.OneOf<Function>(kKinked), apart);
}

// Returns an operand of shape `shape`, or of a shape that broadcasts to `shape`.
Drawn Partner(Drawing& draw, const Shape& shape) {
  if (draw.Chance(2)) return draw.Like(shape);
  return draw.Like(draw.Broadcastable(shape));
}

Drawn ApplyBinary(Drawing& draw) {
  const Drawn a = draw.Under(draw.Any(), 50);
  const Drawn b = draw.Under(Partner(draw, a.shape()), 50);
  const bool swap = draw.Chance(2);
  const Var x = swap ? b.var : a.var, y = swap ? a.var : b.var;
  const double sum = a.bound + b.bound;
  switch (draw.Below(6)) {
    case 0:
      return {x + y, sum};
    case 1:
      return {x - y, sum};
    case 2:
      return {x * y, a.bound * b.bound};
    case 3:
      return {x / (Square(y) + 0.7), (swap ? b : a).bound * 1.5};
    case 4: {
      const Drawn apart = draw.Apart({x, sum});
      return {draw.Chance(2) ? Maximum(apart.var, y) : Minimum(y, apart.var), sum + 1};
    }
    default: {
      const Var base = Square(Tanh(x)) + 0.4, exponent = Tanh(y);
      return {Pow(base, exponent), 3};
    }
  }
}

Drawn ApplyWhere(Drawing& draw) {
  const Drawn a = draw.Any();
  const Drawn b = Partner(draw, a.shape());
  const Var mask = draw.Mask(draw.Broadcastable(a.shape()));
  return {Where(draw.Chance(2) ? mask : Not(mask), a.var, b.var), std::max(a.bound, b.bound)};
}

// Functions with jumps, which are applied to leaves only.
Drawn Compared(Drawing& draw) {
  const Drawn like = draw.Any();
  const Drawn a = draw.Leaf(like.shape()), b = draw.Leaf(like.shape());
  Var mask;
  switch (draw.Below(7)) {
    case 0:
      mask = Less(a.var, b.var);
      break;
    case 1:
      mask = GreaterEqual(a.var, b.var);
      break;
    case 2: {
      const Var above = Greater(a.var, b.var);
      mask = And(above, LessEqual(a.var, b.var * 2));
      break;
    }
    case 3: {
      const Var nan = IsNan(b.var);
      mask = Or(nan, Equal(a.var, a.var));
      break;
    }
    case 4:
      mask = Xor(NotEqual(a.var, b.var), draw.Mask(like.shape()));
      break;
    case 5:
      return {like.var * Sign(a.var), like.bound};
    default:
      return {like.var + Cast(Cast(a.var * 2, kI32) * 3 - 1, draw.dtype()), like.bound + 20};
  }
  return {draw.Chance(2) ? MaskFill(like.var, mask, 0.25) : like.var + Cast(mask, draw.dtype()), like.bound + 1};
}

constexpr Rule kRules[] = {ApplySmooth, ApplySmooth, ApplyKinked, ApplyBinary, ApplyBinary, ApplyWhere, Compared};

}  // namespace

absl::Span<const Rule> ElementwiseRules() { return kRules; }

}  // namespace weft
