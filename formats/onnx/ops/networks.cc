// Records ONNX's products, norms, softmaxes, losses and dropout.
#include <algorithm>
#include <numeric>

#include "weft/formats/onnx/onnx_node.h"

namespace weft {
namespace {

// Records NumPy's matmul. If the left factor is a vector, it is a row; if the right factor is one, it is a column.
OnnxResult MatMulOf(const OnnxNode& node) {
  Var a = node.in(0), b = node.in(1);
  const bool row = a.shape().rank() == 1, column = b.shape().rank() == 1;
  if (row) a = Unsqueeze(a, 0);
  if (column) b = Unsqueeze(b, 1);
  Var y = MatMul(a, b);
  if (row) y = Squeeze(y, {-2});
  if (column) y = Squeeze(y, {-1});
  return VarList{y};
}

OnnxResult Gemm(const OnnxNode& node) {
  const bool transpose_a = node.Int("transA", 0) != 0, transpose_b = node.Int("transB", 0) != 0;
  const Var y =
      node.Float("alpha", 1) * MatMul(node.in(0), node.in(1), {.transpose_a = transpose_a, .transpose_b = transpose_b});
  const double beta = node.Float("beta", 1);
  return VarList{node.has(2) ? y + beta * node.in(2) : y};
}

template <Var (*function)(Var)>
OnnxResult AlongAxis(const OnnxNode& node) {
  WEFT_ASSIGN_OR_RETURN(const int axis, node.AxisOf(node.in(0), -1));
  return VarList{Transpose(function(Transpose(node.in(0), axis, -1)), axis, -1)};
}

// Returns x with all axes from `axis` on merged into one.
Var Merged(Var x, int axis) {
  const Shape shape = x.shape();
  Shape merged(shape.dims().first(static_cast<size_t>(axis)));
  merged.Append(shape.Product(axis, shape.rank()));
  return Reshape(x, merged);
}
Var Flat(Var x) { return Reshape(x, {x.shape().elements()}); }

OnnxResult LayerNormalization(const OnnxNode& node) {
  WEFT_ASSIGN_OR_RETURN(const int axis, node.AxisOf(node.in(0), -1));
  const double epsilon = node.Float("epsilon", 1e-5);
  const Var x = Merged(node.in(0), axis), gain = Flat(node.in(1));
  const Var bias = node.has(2) ? Flat(node.in(2)) : FillLike(gain, 0);
  VarList y = {Reshape(LayerNorm(x, gain, bias, epsilon), node.in(0).shape())};
  if (node.output_count() > 1) {  // also returns the mean and 1 / deviation, with axes of size 1
    Shape shape = node.in(0).shape();
    const int rank = shape.rank();
    for (int i = axis; i < rank; ++i) shape.set_dim(i, 1);
    y.push_back(Reshape(Mean(x, -1), shape));
    y.push_back(Reshape(Rsqrt(Variance(x, {-1}, 0) + epsilon), shape));
  }
  return y;
}

OnnxResult RmsNormalization(const OnnxNode& node) {
  WEFT_ASSIGN_OR_RETURN(const int axis, node.AxisOf(node.in(0), -1));
  const Var x = Merged(node.in(0), axis);
  const Var gain = Flat(node.in(1));
  return VarList{Reshape(RmsNorm(x, gain, node.Float("epsilon", 1e-5)), node.in(0).shape())};
}

// Normalizes each of `groups` groups of channels of x [N, C, ...] over its channels and positions. Then applies gain
// and bias.
OnnxResult Grouped(const OnnxNode& node, int64_t groups) {
  const Var x = node.in(0);
  const Shape shape = x.shape();
  const int64_t batch = shape.dim(0), channels = shape.dim(1);
  if (groups < 1 || channels % groups != 0 || shape.elements() == 0) {
    return InvalidArgument(groups, " groups do not divide its input ", ToString(shape));
  }
  const Var rows = Reshape(x, {batch, groups, shape.elements() / (batch * groups)});
  const Var one = Fill(x.tape, {x.dtype(), {rows.dim(-1)}}, 1);
  const Var y = LayerNorm(rows, one, FillLike(one, 0), node.Float("epsilon", 1e-5));
  const Shape by_channel = {batch, channels, shape.Product(2, shape.rank())};
  const auto channel = [&](Var v) { return Reshape(v, {channels, 1}); };
  return VarList{Reshape(Reshape(y, by_channel) * channel(node.in(1)) + channel(node.in(2)), shape)};
}
OnnxResult GroupNormalization(const OnnxNode& node) { return Grouped(node, node.Int("num_groups", 1)); }
OnnxResult InstanceNormalization(const OnnxNode& node) { return Grouped(node, node.in(0).dim(1)); }

// Records a norm by the statistics of inputs 3 and 4. Nodes that compute statistics are not read.
OnnxResult BatchNormalization(const OnnxNode& node) {
  if (node.Int("training_mode", 0) != 0) return absl::UnimplementedError("statistics of the batch");
  const Var x = node.in(0);
  Shape shape = {node.in(1).dim(0)};
  for (int i = 2; i < x.shape().rank(); ++i) shape.Append(1);
  const Var factor = node.in(1) * Rsqrt(node.in(4) + node.Float("epsilon", 1e-5));
  return VarList{x * Reshape(factor, shape) + Reshape(node.in(2) - node.in(3) * factor, shape)};
}

// Dropout that drops elements is not read: it would draw other random numbers than the program that wrote the model.
OnnxResult DropoutOf(const OnnxNode& node) {
  double rate = node.Float("ratio", 0.5), training = 0;
  if (node.has(1)) {
    WEFT_ASSIGN_OR_RETURN(rate, node.Number(1));
  }
  if (node.has(2)) {
    WEFT_ASSIGN_OR_RETURN(training, node.Number(2));
  }
  if (training != 0 && rate > 0) return absl::UnimplementedError("random numbers of another generator");
  const Var x = node.in(0);
  VarList y = {x + 0};
  if (node.output_count() > 1) y.push_back(Fill(node.tape(), {kBool, x.shape()}, 1));
  return y;
}

// Moves the classes of [N, C, ...] to the last axis.
Var ClassesLast(Var x) {
  std::vector<int> order(static_cast<size_t>(std::max(x.shape().rank(), 2)));
  std::iota(order.begin(), order.end(), 0);
  order.erase(order.begin() + 1);
  order.push_back(1);
  return Permute(x, order);
}
Var ClassesSecond(Var x) {
  std::vector<int> order(static_cast<size_t>(std::max(x.shape().rank(), 2)));
  std::iota(order.begin(), order.end(), 0);
  order.pop_back();
  order.insert(order.begin() + 1, static_cast<int>(order.size()));
  return Permute(x, order);
}

CrossEntropyOptions LossOptions(const OnnxNode& node) {
  const std::string reduction = node.String("reduction", "mean");
  return {.ignore_index = node.Int("ignore_index", kIgnoredTarget),
          .weights = node.optional(2),
          .reduction = reduction == "mean"  ? Reduction::kMean
                       : reduction == "sum" ? Reduction::kSum
                                            : Reduction::kNone};
}

OnnxResult NllLoss(const OnnxNode& node) {
  return VarList{NegativeLogLikelihood(ClassesLast(node.in(0)), node.ids(1), LossOptions(node))};
}
OnnxResult SoftmaxCrossEntropy(const OnnxNode& node) {
  const Var logits = ClassesLast(node.in(0));
  VarList y = {CrossEntropy(logits, node.ids(1), LossOptions(node))};
  if (node.output_count() > 1) y.push_back(ClassesSecond(LogSoftmax(logits)));
  return y;
}

// Records a causal depthwise convolution along the last axis of x [B, C, L] with kernels of k elements. The other
// output is the next state: the last k - 1 positions of the state before and x.
OnnxResult CausalConv(const OnnxNode& node) {
  const Var x = node.in(0), weight = node.in(1);
  const int64_t k = weight.dim(2), length = x.dim(2), channels = x.dim(1);
  if (k < 1) return InvalidArgument("its kernel is empty");
  WEFT_RETURN_IF_ERROR(CheckOnnxSteps(k));
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

// Records an einsum of one or two factors, if its equation is one of these.
OnnxResult Einsum(const OnnxNode& node) {
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

constexpr OnnxOp kOps[] = {
    {"BatchNormalization", BatchNormalization},
    {"CausalConvWithState", CausalConv},
    {"Dropout", DropoutOf},
    {"Einsum", Einsum},
    {"Gemm", Gemm},
    {.name = "GroupNormalization", .build = GroupNormalization, .since = 21},
    {"InstanceNormalization", InstanceNormalization},
    {"LayerNormalization", LayerNormalization},
    {.name = "LogSoftmax", .build = AlongAxis<LogSoftmax>, .since = 13},
    {"MatMul", MatMulOf},
    {"NegativeLogLikelihoodLoss", NllLoss},
    {"RMSNormalization", RmsNormalization},
    {.name = "Softmax", .build = AlongAxis<Softmax>, .since = 13},
    {"SoftmaxCrossEntropyLoss", SoftmaxCrossEntropy},
};

}  // namespace

absl::Span<const OnnxOp> OnnxNetworks() { return kOps; }

}  // namespace weft
