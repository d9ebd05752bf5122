// Records ONNX's elementwise ops.
#include <limits>

#include "weft/tests/onnx/tables.h"

namespace weft {
namespace {

// Combines all inputs from left to right.
template <Var (*function)(Var, Var)>
Var Fold(const CaseNode& node) {
  Var y = node.in(0);
  for (size_t i = 1; i < node.input_count(); ++i) y = function(y, node.in(i));
  return y;
}
template <Var (*function)(Var, Var)>
CaseResult Variadic(const CaseNode& node) {
  return VarList{Fold<function>(node)};
}

Var Reciprocal(Var x) { return 1 / x; }
Var Softsign(Var x) { return x / (1 + Abs(x)); }
Var HardSwish(Var x) { return x * Clamp(x / 6 + 0.5, 0, 1); }
Var Mish(Var x) { return x * Tanh(Softplus(x)); }
Var ExpM1(Var x, double alpha) { return alpha * (Exp(Minimum(x, Number(x, 0))) - 1); }

// The result has the base's type.
CaseResult PowOf(const CaseNode& node) {
  const Var base = node.in(0), exponent = node.in(1);
  if (base.dtype() == exponent.dtype() && IsFloat(base.dtype())) return VarList{Pow(base, exponent)};
  return VarList{Cast(Pow(Cast(base, kF64), Cast(exponent, kF64)), base.dtype())};
}

CaseResult Clip(const CaseNode& node) {
  Var y = node.in(0);
  if (node.has(1)) y = Maximum(y, node.in(1));
  if (node.has(2)) y = Minimum(y, node.in(2));
  return VarList{y};
}

CaseResult Elu(const CaseNode& node) { return VarList{Relu(node.in(0)) + ExpM1(node.in(0), node.Float("alpha", 1))}; }
CaseResult Selu(const CaseNode& node) {
  const double alpha = node.Float("alpha", 1.67326319217681884765625), gamma = node.Float("gamma", 1.05070102214813232);
  return VarList{gamma * (Relu(node.in(0)) + ExpM1(node.in(0), alpha))};
}
CaseResult LeakyRelu(const CaseNode& node) {
  const Var x = node.in(0);
  return VarList{Relu(x) + node.Float("alpha", 0.01) * Minimum(x, Number(x, 0))};
}
CaseResult Swish(const CaseNode& node) { return VarList{node.in(0) * Sigmoid(node.Float("alpha", 1) * node.in(0))}; }
CaseResult GeluOf(const CaseNode& node) {
  return VarList{Gelu(node.in(0), node.String("approximate", "none") == "tanh" ? GeluForm::kTanh : GeluForm::kErf)};
}
CaseResult MeanOf(const CaseNode& node) { return VarList{Fold<Add>(node) / static_cast<double>(node.input_count())}; }
CaseResult WhereOf(const CaseNode& node) { return VarList{Where(node.in(0), node.in(1), node.in(2))}; }

constexpr CaseOp kOps[] = {
    {"Abs", UnaryCase<Abs>},
    {"Add", BinaryCase<Add>},
    {"And", BinaryCase<And>},
    {"Clip", Clip},
    {"Div", BinaryCase<Div>},
    {"Elu", Elu},
    {"Equal", BinaryCase<Equal>},
    {"Erf", UnaryCase<Erf>},
    {"Exp", UnaryCase<Exp>},
    {"Gelu", GeluOf},
    {"Greater", BinaryCase<Greater>},
    {"GreaterOrEqual", BinaryCase<GreaterEqual>},
    {"HardSwish", UnaryCase<HardSwish>},
    {"LeakyRelu", LeakyRelu},
    {"Less", BinaryCase<Less>},
    {"LessOrEqual", BinaryCase<LessEqual>},
    {"Log", UnaryCase<Log>},
    {"Max", Variadic<Maximum>},
    {"Mean", MeanOf},
    {"Min", Variadic<Minimum>},
    {"Mish", UnaryCase<Mish>},
    {"Mul", BinaryCase<Mul>},
    {"Neg", UnaryCase<Neg>},
    {"Not", UnaryCase<Not>},
    {"Or", BinaryCase<Or>},
    {"Pow", PowOf},
    {"Reciprocal", UnaryCase<Reciprocal>},
    {"Relu", UnaryCase<Relu>},
    {"Selu", Selu},
    {"Sigmoid", UnaryCase<Sigmoid>},
    {"Softplus", UnaryCase<Softplus>},
    {"Softsign", UnaryCase<Softsign>},
    {"Sqrt", UnaryCase<Sqrt>},
    {"Sub", BinaryCase<Sub>},
    {"Sum", Variadic<Add>},
    {"Swish", Swish},
    {"Tanh", UnaryCase<Tanh>},
    {"Where", WhereOf},
    {"Xor", BinaryCase<Xor>},
};

}  // namespace

absl::Span<const CaseOp> OnnxElementwise() { return kOps; }

}  // namespace weft
