#include "weft/tests/pytorch/ops.h"

#include <limits>

#include "absl/strings/str_cat.h"

namespace weft {
namespace {

template <Var (*function)(Var, int)>
CaseResult AlongAxis(const CaseNode& node) {
  return VarList{function(node.in(0), static_cast<int>(node.Int("axis", 0)))};
}
template <Var (*function)(VarSpan, int)>
CaseResult Parts(const CaseNode& node) {
  VarList parts;
  for (size_t i = 0; i < node.input_count(); ++i) parts.push_back(node.in(i));
  return VarList{function(parts, static_cast<int>(node.Int("axis", 0)))};
}
std::vector<int> AxesOf(const CaseNode& node) {
  const std::vector<int64_t> axes = node.Ints("axes");
  return {axes.begin(), axes.end()};
}
bool Keep(const CaseNode& node) { return node.Int("keep", 0) != 0; }
template <Var (*function)(Var, AxisSpan, bool)>
CaseResult Reduce(const CaseNode& node) {
  return VarList{function(node.in(0), AxesOf(node), Keep(node))};
}
template <Var (*function)(Var, int64_t)>
CaseResult Triangle(const CaseNode& node) {
  return VarList{function(node.in(0), node.Int("diagonal", 0))};
}

Var GeluErf(Var x) { return Gelu(x); }
Var GeluTanh(Var x) { return Gelu(x, GeluForm::kTanh); }
Var RunningSum(Var x) { return CumulativeSum(x); }

CaseResult ClampOf(const CaseNode& node) {
  return VarList{Clamp(node.in(0), node.Float("low", 0), node.Float("high", 0))};
}
CaseResult Power(const CaseNode& node) { return VarList{Pow(node.in(0), node.Float("exponent", 1))}; }
CaseResult WhereOf(const CaseNode& node) { return VarList{Where(node.in(0), node.in(1), node.in(2))}; }
CaseResult VarianceOf(const CaseNode& node) {
  return VarList{Variance(node.in(0), AxesOf(node), node.Float("correction", 1), Keep(node))};
}
CaseResult UnbiasedVariance(const CaseNode& node) { return VarList{Variance(node.in(0), {0, 1})}; }
CaseResult NormOf(const CaseNode& node) {
  return VarList{Norm(node.in(0), AxesOf(node), node.Float("order", 2), Keep(node))};
}
CaseResult MaximumNorm(const CaseNode& node) {
  return VarList{Norm(node.in(0), AxesOf(node), std::numeric_limits<double>::infinity(), Keep(node))};
}
CaseResult SqueezeOf(const CaseNode& node) {
  return VarList{Squeeze(node.in(0), {static_cast<int>(node.Int("axis", 0))})};
}
CaseResult PadOf(const CaseNode& node) {
  return VarList{Pad(node.in(0), -1, node.Int("before", 0), node.Int("after", 0), node.Float("value", 0))};
}
CaseResult PermuteOf(const CaseNode& node) { return VarList{Permute(node.in(0), AxesOf(node))}; }
CaseResult BroadcastOf(const CaseNode& node) {
  return VarList{BroadcastTo(node.in(0), Shape(absl::MakeConstSpan(node.Ints("shape"))))};
}
template <Var (*function)(Var, Var, int)>
CaseResult Look(const CaseNode& node) {
  return VarList{function(node.in(0), node.ids(1), static_cast<int>(node.Int("axis", 0)))};
}
CaseResult ScatterAddOf(const CaseNode& node) {
  return VarList{ScatterAdd(node.in(0), node.ids(1), node.in(2), static_cast<int>(node.Int("axis", 0)))};
}
CaseResult EmbeddingOf(const CaseNode& node) { return VarList{Embedding(node.in(0), node.ids(1))}; }
CaseResult MatMulOf(const CaseNode& node) { return VarList{MatMul(node.in(0), node.in(1))}; }
CaseResult LayerNormOf(const CaseNode& node) {
  return VarList{LayerNorm(node.in(0), node.in(1), node.in(2), node.Float("epsilon", 0))};
}
CaseResult RmsNormOf(const CaseNode& node) {
  return VarList{RmsNorm(node.in(0), node.in(1), node.Float("epsilon", 0))};
}
CaseResult BatchNormOf(const CaseNode& node) {
  const Var unused = FillLike(node.in(1), 1);
  return VarList{BatchNorm(node.in(0), node.in(1), node.in(2), unused, unused, node.Float("epsilon", 0)).y};
}
CaseResult AttentionOf(const CaseNode& node) {
  const ScaledDotProductOptions options = {.heads = node.Int("heads", 1),
                                           .key_value_heads = node.Int("groups", 1),
                                           .soft_cap = node.Float("soft_cap", 0),
                                           .causal = node.Int("causal", 0) != 0};
  VarList masks;
  if (node.has(3)) masks.push_back(node.in(3));
  return VarList{ScaledDotProductAttention(node.in(0), node.in(1), node.in(2), options, masks)};
}

Reduction ReductionOf(const CaseNode& node) {
  const std::string name = node.String("reduction", "mean");
  return name == "mean" ? Reduction::kMean : name == "sum" ? Reduction::kSum : Reduction::kNone;
}
CrossEntropyOptions ClassOptions(const CaseNode& node) {
  return {.ignore_index = node.Int("ignore_index", kIgnoredTarget),
          .label_smoothing = node.Float("label_smoothing", 0),
          .weights = node.in(2),
          .reduction = ReductionOf(node)};
}
CaseResult CrossEntropyOf(const CaseNode& node) {
  return VarList{CrossEntropy(node.in(0), node.ids(1), ClassOptions(node))};
}
CaseResult SoftCrossEntropy(const CaseNode& node) {
  return VarList{CrossEntropy(node.in(0), node.in(1), ClassOptions(node))};
}
CaseResult Nll(const CaseNode& node) {
  CrossEntropyOptions options = ClassOptions(node);
  options.label_smoothing = 0;  // was drawn for cross entropy, which shares these options
  return VarList{NegativeLogLikelihood(LogSoftmax(node.in(0)), node.ids(1), options)};
}
template <Var (*function)(Var, Var, Reduction)>
CaseResult Loss(const CaseNode& node) {
  return VarList{function(node.in(0), node.in(1), ReductionOf(node))};
}

// Records some steps of an optimizer. The node's inputs are the weight and the gradient of each step. Its output is the
// weight after the last step.
template <class Step>
VarList Steps(const CaseNode& node, int states, Step step) {
  const TensorType type = node.in(0).type();
  Tape* const tape = node.tape();
  Var w = Assign(tape->State("w", type, Zeros()), node.in(0));
  VarList state;
  for (int s = 0; s < states; ++s) state.push_back(tape->State(absl::StrCat("s", s), type, Zeros()));
  for (size_t i = 1; i < node.input_count(); ++i) {
    const VarList next = step(w, state, node.in(i), Fill(tape, {kI32, {}}, static_cast<double>(i)));
    w = next[0];
    for (int s = 0; s < states; ++s) state[s] = next[s + 1];
  }
  return {w};
}
Var Rate(const CaseNode& node) { return Fill(node.tape(), {kF32, {}}, 0.1); }
Var One(const CaseNode& node) { return Fill(node.tape(), {kF32, {}}, 1); }

CaseResult SgdOf(const CaseNode& node) {
  const SgdOptions options = {node.Float("momentum", 0), node.Float("weight_decay", 0), node.Int("nesterov", 0) != 0};
  return Steps(node, 1, [&](Var w, VarSpan state, Var gradient, Var) {
    return SgdUpdate(w, state[0], gradient, Rate(node), One(node), options);
  });
}
template <VarList (*update)(Var, Var, Var, Var, Var, Var, Var, const AdamWOptions&)>
CaseResult AdamOf(const CaseNode& node) {
  const AdamWOptions options = {.weight_decay = node.Float("weight_decay", 0)};
  return Steps(node, 2, [&](Var w, VarSpan state, Var gradient, Var step) {
    return update(w, state[0], state[1], gradient, Rate(node), One(node), step, options);
  });
}
CaseResult AdagradOf(const CaseNode& node) {
  const AdagradOptions options = {.weight_decay = node.Float("weight_decay", 0),
                                  .rate_decay = node.Float("lr_decay", 0)};
  return Steps(node, 1, [&](Var w, VarSpan state, Var gradient, Var step) {
    return AdagradUpdate(w, state[0], gradient, Rate(node), One(node), step, options);
  });
}

constexpr CaseOp kOps[] = {
    {"abs", UnaryCase<Abs>},
    {"adagrad", AdagradOf},
    {"adam", AdamOf<AdamUpdate>},
    {"adamw", AdamOf<AdamWUpdate>},
    {"add", BinaryCase<Add>},
    {"attention", AttentionOf},
    {"batch_norm", BatchNormOf},
    {"binary_cross_entropy", Loss<BinaryCrossEntropy>},
    {"broadcast_to", BroadcastOf},
    {"clamp", ClampOf},
    {"concat", Parts<Concat>},
    {"cross_entropy", CrossEntropyOf},
    {"cumulative_sum", UnaryCase<RunningSum>},
    {"div", BinaryCase<Div>},
    {"embedding", EmbeddingOf},
    {"erf", UnaryCase<Erf>},
    {"exp", UnaryCase<Exp>},
    {"flip", AlongAxis<Flip>},
    {"gather", Look<Gather>},
    {"gelu", UnaryCase<GeluErf>},
    {"gelu_tanh", UnaryCase<GeluTanh>},
    {"kl_divergence", Loss<KlDivergence>},
    {"layer_norm", LayerNormOf},
    {"log", UnaryCase<Log>},
    {"log_softmax", UnaryCase<LogSoftmax>},
    {"log_sum_exp", Reduce<LogSumExp>},
    {"matmul", MatMulOf},
    {"max", Reduce<Max>},
    {"maximum", BinaryCase<Maximum>},
    {"mean", Reduce<Mean>},
    {"mean_squared_error", Loss<MeanSquaredError>},
    {"min", Reduce<Min>},
    {"minimum", BinaryCase<Minimum>},
    {"mul", BinaryCase<Mul>},
    {"neg", UnaryCase<Neg>},
    {"nll", Nll},
    {"norm", NormOf},
    {"norm_inf", MaximumNorm},
    {"pad", PadOf},
    {"permute", PermuteOf},
    {"pow", BinaryCase<Pow>},
    {"power", Power},
    {"prod", Reduce<Prod>},
    {"relu", UnaryCase<Relu>},
    {"rms_norm", RmsNormOf},
    {"rsqrt", UnaryCase<Rsqrt>},
    {"scatter_add", ScatterAddOf},
    {"sgd", SgdOf},
    {"sigmoid", UnaryCase<Sigmoid>},
    {"silu", UnaryCase<Silu>},
    {"soft_cross_entropy", SoftCrossEntropy},
    {"softmax", UnaryCase<Softmax>},
    {"softplus", UnaryCase<Softplus>},
    {"sqrt", UnaryCase<Sqrt>},
    {"square", UnaryCase<Square>},
    {"squeeze", SqueezeOf},
    {"stack", Parts<Stack>},
    {"sub", BinaryCase<Sub>},
    {"sum", Reduce<Sum>},
    {"take_along", Look<TakeAlong>},
    {"tanh", UnaryCase<Tanh>},
    {"tril", Triangle<Tril>},
    {"triu", Triangle<Triu>},
    {"unbiased_variance", UnbiasedVariance},
    {"unsqueeze", AlongAxis<Unsqueeze>},
    {"variance", VarianceOf},
    {"where", WhereOf},
};

}  // namespace

absl::Span<const CaseOp> PytorchOps() { return kOps; }

}  // namespace weft
