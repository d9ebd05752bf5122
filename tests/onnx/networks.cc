// Records ONNX's products, norms, softmaxes, losses and dropout.
#include <numeric>

#include "weft/tests/onnx/tables.h"

namespace weft {
namespace {

// Records NumPy's matmul. If the left factor is a vector, it is a row; if the right factor is one, it is a column.
CaseResult MatMulOf(const CaseNode& node) {
  Var a = node.in(0), b = node.in(1);
  const bool row = a.shape().rank() == 1, column = b.shape().rank() == 1;
  if (row) a = Unsqueeze(a, 0);
  if (column) b = Unsqueeze(b, 1);
  Var y = MatMul(a, b);
  if (row) y = Squeeze(y, {-2});
  if (column) y = Squeeze(y, {-1});
  return VarList{y};
}

CaseResult Gemm(const CaseNode& node) {
  const bool transpose_a = node.Int("transA", 0) != 0, transpose_b = node.Int("transB", 0) != 0;
  const Var y =
      node.Float("alpha", 1) * MatMul(node.in(0), node.in(1), {.transpose_a = transpose_a, .transpose_b = transpose_b});
  return VarList{node.has(2) ? y + node.Float("beta", 1) * node.in(2) : y};
}

template <Var (*function)(Var)>
CaseResult AlongAxis(const CaseNode& node) {
  const int axis = static_cast<int>(node.Int("axis", -1));
  return VarList{Transpose(function(Transpose(node.in(0), axis, -1)), axis, -1)};
}

// Returns x with all axes from `axis` on merged into one.
Var Merged(Var x, int64_t axis) {
  const Shape shape = x.shape();
  const int front = static_cast<int>(axis < 0 ? axis + shape.rank() : axis);
  Shape merged(shape.dims().first(front));
  merged.Append(shape.Product(front, shape.rank()));
  return Reshape(x, merged);
}
Var Flat(Var x) { return Reshape(x, {x.shape().elements()}); }

CaseResult LayerNormalization(const CaseNode& node) {
  const int64_t axis = node.Int("axis", -1);
  const double epsilon = node.Float("epsilon", 1e-5);
  const Var x = Merged(node.in(0), axis), gain = Flat(node.in(1));
  const Var bias = node.has(2) ? Flat(node.in(2)) : FillLike(gain, 0);
  VarList y = {Reshape(LayerNorm(x, gain, bias, epsilon), node.in(0).shape())};
  if (node.output_count() > 1) {  // also returns the mean and 1 / deviation, with axes of size 1
    Shape shape = node.in(0).shape();
    const int rank = shape.rank();
    for (int i = static_cast<int>(axis < 0 ? axis + rank : axis); i < rank; ++i) shape.set_dim(i, 1);
    y.push_back(Reshape(Mean(x, -1), shape));
    y.push_back(Reshape(Rsqrt(Variance(x, {-1}, 0) + epsilon), shape));
  }
  return y;
}

CaseResult RmsNormalization(const CaseNode& node) {
  const Var x = Merged(node.in(0), node.Int("axis", -1));
  const Var gain = Flat(node.in(1));
  return VarList{Reshape(RmsNorm(x, gain, node.Float("epsilon", 1e-5)), node.in(0).shape())};
}

// Normalizes each of `groups` groups of channels of x [N, C, ...] over its channels and positions. Then applies gain
// and bias.
CaseResult Grouped(const CaseNode& node, int64_t groups) {
  const Var x = node.in(0);
  const Shape shape = x.shape();
  const int64_t batch = shape.dim(0), channels = shape.dim(1);
  const Var rows = Reshape(x, {batch, groups, shape.elements() / (batch * groups)});
  const Var one = Fill(x.tape, {x.dtype(), {rows.dim(-1)}}, 1);
  const Var y = LayerNorm(rows, one, FillLike(one, 0), node.Float("epsilon", 1e-5));
  const Shape by_channel = {batch, channels, shape.Product(2, shape.rank())};
  const auto channel = [&](Var v) { return Reshape(v, {channels, 1}); };
  return VarList{Reshape(Reshape(y, by_channel) * channel(node.in(1)) + channel(node.in(2)), shape)};
}
CaseResult GroupNormalization(const CaseNode& node) { return Grouped(node, node.Int("num_groups", 1)); }
CaseResult InstanceNormalization(const CaseNode& node) { return Grouped(node, node.in(0).dim(1)); }

// Random numbers differ between frameworks, so only dropout that keeps everything can be compared.
CaseResult DropoutOf(const CaseNode& node) {
  const double rate = node.has(1) ? node.Number(1) : node.Float("ratio", 0.5);
  const bool training = node.has(2) && node.Number(2) != 0;
  if (training && rate > 0) return absl::UnimplementedError("random numbers of another generator");
  const Var x = node.in(0);
  VarList y = {training ? Dropout(x, rate) : x + 0};
  if (node.output_count() > 1) y.push_back(Fill(node.tape(), {kBool, x.shape()}, 1));
  return y;
}

// Moves the classes of [N, C, ...] to the last axis.
Var ClassesLast(Var x) {
  std::vector<int> order(static_cast<size_t>(x.shape().rank()));
  std::iota(order.begin(), order.end(), 0);
  order.erase(order.begin() + 1);
  order.push_back(1);
  return Permute(x, order);
}
Var ClassesSecond(Var x) {
  std::vector<int> order(static_cast<size_t>(x.shape().rank()));
  std::iota(order.begin(), order.end(), 0);
  order.pop_back();
  order.insert(order.begin() + 1, x.shape().rank() - 1);
  return Permute(x, order);
}

CrossEntropyOptions LossOptions(const CaseNode& node) {
  const std::string reduction = node.String("reduction", "mean");
  return {.ignore_index = node.Int("ignore_index", kIgnoredTarget),
          .weights = node.in(2),
          .reduction = reduction == "mean"  ? Reduction::kMean
                       : reduction == "sum" ? Reduction::kSum
                                            : Reduction::kNone};
}

CaseResult NllLoss(const CaseNode& node) {
  return VarList{NegativeLogLikelihood(ClassesLast(node.in(0)), node.ids(1), LossOptions(node))};
}
CaseResult SoftmaxCrossEntropy(const CaseNode& node) {
  const Var logits = ClassesLast(node.in(0));
  VarList y = {CrossEntropy(logits, node.ids(1), LossOptions(node))};
  if (node.output_count() > 1) y.push_back(ClassesSecond(LogSoftmax(logits)));
  return y;
}

// Records a causal depthwise convolution along the last axis of x [B, C, L] with kernels of k elements. The other
// output is the next state: the last k - 1 positions of the state before and x.
CaseResult CausalConv(const CaseNode& node) {
  const Var x = node.in(0), weight = node.in(1);
  const int64_t k = weight.dim(2), length = x.dim(2), channels = x.dim(1);
  const Var before = node.has(3) ? node.in(3) : Fill(x.tape, {x.dtype(), {x.dim(0), channels, k - 1}}, 0);
  const Var padded = Concat({before, x}, 2);
  Var y;
  for (int64_t i = 0; i < k; ++i) {
    const Var tap = Slice(padded, 2, i, i + length) * Reshape(Slice(weight, 2, i, i + 1), {channels, 1});
    y = i == 0 ? tap : y + tap;
  }
  if (node.has(2)) y = y + Reshape(node.in(2), {channels, 1});
  if (node.String("activation", "none") != "none") y = Silu(y);
  return VarList{y, Slice(padded, 2, length, length + k - 1)};
}

CaseResult Conv(const CaseNode&) { return absl::UnimplementedError("convolution in two dimensions"); }

// Records an einsum of one or two factors, if its equation is one of these.
CaseResult Einsum(const CaseNode& node) {
  const std::string equation = node.String("equation", "");
  if (equation == "ij->i") return VarList{Sum(node.in(0), -1)};
  if (equation == "ij->ji") return VarList{Transpose(node.in(0), 0, 1)};
  if (equation == "i,i") return VarList{Sum(node.in(0) * node.in(1))};
  if (equation == "->") return VarList{node.in(0) + 0};
  if (equation == "bij, bjk -> bik") return VarList{MatMul(node.in(0), node.in(1))};
  if (equation == "...ii ->...i") {
    const Var x = node.in(0), n = Iota(x.tape, kI32, x.dim(-1));
    return VarList{Sum(Where(Equal(Reshape(n, {n.dim(0), 1}), n), x, Number(x, 0)), -1)};
  }
  return absl::UnimplementedError("this equation");
}

constexpr CaseOp kOps[] = {
    {"CausalConvWithState", CausalConv},
    {"Conv", Conv},
    {"Dropout", DropoutOf},
    {"Einsum", Einsum},
    {"Gemm", Gemm},
    {"GroupNormalization", GroupNormalization},
    {"InstanceNormalization", InstanceNormalization},
    {"LayerNormalization", LayerNormalization},
    {"LogSoftmax", AlongAxis<LogSoftmax>},
    {"MatMul", MatMulOf},
    {"NegativeLogLikelihoodLoss", NllLoss},
    {"RMSNormalization", RmsNormalization},
    {"Softmax", AlongAxis<Softmax>},
    {"SoftmaxCrossEntropyLoss", SoftmaxCrossEntropy},
};

}  // namespace

absl::Span<const CaseOp> OnnxNetworks() { return kOps; }

}  // namespace weft
