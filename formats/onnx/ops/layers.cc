// Records ONNX's products, convolutions, pooling, norms, softmaxes, losses and dropout.
#include <algorithm>
#include <limits>
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
  WEFT_ASSIGN_OR_RETURN(const double rate, node.Number(1, node.Float("ratio", 0.5)));
  WEFT_ASSIGN_OR_RETURN(const double training, node.Number(2, 0));
  if (training != 0 && rate > 0) return absl::UnimplementedError("random numbers of another generator");
  const Var x = node.in(0);
  VarList y = {x + 0};
  if (node.output_count() > 1) y.push_back(Fill(node.tape(), {kBool, x.shape()}, 1));
  return y;
}

// Moves the classes of [N, C, ...] to the last axis, and back.
Var ClassesLast(Var x) { return MoveAxis(x, 1, std::max(x.shape().rank() - 1, 1)); }
Var ClassesSecond(Var x) { return MoveAxis(x, std::max(x.shape().rank() - 1, 1), 1); }

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

// The windows of a convolution or of pooling, of inputs [N, C, ...] with one to three further axes. A window is a slice
// of the padded input for each element of the kernel; the slices have the shape of the result.
struct Window {
  std::vector<int64_t> kernel, strides, dilations;
  std::vector<int64_t> before, after;  // padding
  std::vector<int64_t> beyond;         // further padding, which ceil_mode needs for the last windows
  std::vector<int64_t> out;            // the result's sizes

  bool is_plain() const {  // without gaps, overlaps and padding
    const std::vector<int64_t> none(kernel.size(), 0), ones(kernel.size(), 1);
    return strides == kernel && dilations == ones && before == none && after == none && beyond == none;
  }
  int64_t taps() const { return std::accumulate(kernel.begin(), kernel.end(), int64_t{1}, std::multiplies<>()); }
};

absl::StatusOr<Window> WindowOf(const OnnxNode& node, const Shape& x, const std::vector<int64_t>& kernel) {
  const size_t n = kernel.size();
  if (n < 1 || n > 3 || x.rank() != static_cast<int>(n) + 2) {
    return InvalidArgument("its kernel of ", n, " axes does not fit ", ToString(x));
  }
  const std::vector<int64_t> ones(n, 1), pads = node.Ints("pads", std::vector<int64_t>(2 * n, 0));
  Window w = {.kernel = kernel, .strides = node.Ints("strides", ones), .dilations = node.Ints("dilations", ones)};
  if (w.strides.size() != n || w.dilations.size() != n || pads.size() != 2 * n) {
    return InvalidArgument("its strides, dilations or pads are not those of ", n, " axes");
  }
  const std::string automatic = node.String("auto_pad", "NOTSET");
  const bool ceil = node.Int("ceil_mode", 0) != 0, same = automatic == "SAME_UPPER" || automatic == "SAME_LOWER";
  int64_t taps = 1;
  for (size_t i = 0; i < n; ++i) {
    const int64_t size = x.dim(static_cast<int>(i) + 2), k = kernel[i], s = w.strides[i], d = w.dilations[i];
    constexpr int64_t kMax = 1 << 20;
    if (std::min({k, s, d}) < 1 || std::max({k, s, d}) > kMax || std::min(pads[i], pads[i + n]) < 0 ||
        std::max(pads[i], pads[i + n]) > kMax) {
      return InvalidArgument("its kernel, strides, dilations or pads are out of range");
    }
    taps *= k;
    WEFT_RETURN_IF_ERROR(CheckOnnxSteps(taps));
    const int64_t extent = (k - 1) * d + 1;
    int64_t before = pads[i], after = pads[i + n];
    if (automatic == "VALID") before = after = 0;
    if (same) {
      const int64_t all = std::max<int64_t>(((size + s - 1) / s - 1) * s + extent - size, 0);
      before = automatic == "SAME_UPPER" ? all / 2 : all - all / 2;
      after = all - before;
    }
    const int64_t room = size + before + after - extent;
    if (room < 0) return InvalidArgument("its window is larger than its input ", ToString(x));
    int64_t out = (ceil ? room + s - 1 : room) / s + 1;
    if (ceil && (out - 1) * s >= size + before) --out;  // a window must begin in the input or in `before`
    w.before.push_back(before);
    w.after.push_back(after);
    w.beyond.push_back(std::max<int64_t>((out - 1) * s - room, 0));
    w.out.push_back(out);
  }
  return w;
}

// Returns the slices for all elements of the kernel, in row-major order. Padding is `value`, and `beyond` is
// `beyond_value`.
VarList Slices(Var x, const Window& w, double value, double beyond_value) {
  VarList slices = {x};
  for (size_t i = 0; i < w.kernel.size(); ++i) {
    const int axis = static_cast<int>(i) + 2;
    VarList next;
    for (Var each : slices) {
      Var padded = each;
      if (w.before[i] + w.after[i] > 0) padded = Pad(padded, axis, w.before[i], w.after[i], value);
      if (w.beyond[i] > 0) padded = Pad(padded, axis, 0, w.beyond[i], beyond_value);
      for (int64_t k = 0; k < w.kernel[i]; ++k) {
        const int64_t begin = k * w.dilations[i];
        next.push_back(
            Every(Slice(padded, axis, begin, begin + (w.out[i] - 1) * w.strides[i] + 1), axis, w.strides[i]));
      }
    }
    slices = next;
  }
  return slices;
}

// Returns the windows as columns, [N, groups, C / groups · taps, positions].
Var Columns(Var x, const Window& w, int64_t groups) {
  const int64_t batch = x.dim(0), channels = x.dim(1), n = static_cast<int64_t>(w.kernel.size());
  const int64_t positions = std::accumulate(w.out.begin(), w.out.end(), int64_t{1}, std::multiplies<>());
  const Shape columns = {batch, groups, channels / groups * w.taps(), positions};
  if (w.is_plain() && n <= 2) {  // [N, C, h, kh, w, kw] → [N, C, kh, kw, h, w]
    Shape apart = {batch, channels};
    std::vector<int> order = {0, 1};
    for (int i = 0; i < n; ++i) {
      x = Slice(x, i + 2, 0, w.out[i] * w.kernel[i]);
      for (int64_t dim : {w.out[i], w.kernel[i]}) apart.Append(dim);
      order.push_back(3 + 2 * i);
    }
    for (int i = 0; i < n; ++i) order.push_back(2 + 2 * i);
    return Reshape(Permute(Reshape(x, apart), order), columns);
  }
  VarList taps = Slices(x, w, 0, 0);
  for (Var& tap : taps) tap = Reshape(tap, {batch, groups, channels / groups, 1, positions});
  return Reshape(Concat(taps, 3), columns);
}

OnnxResult Conv(const OnnxNode& node) {
  const Var x = node.in(0), weight = node.in(1);
  const Shape shape = weight.shape();
  if (shape.rank() < 3 || shape.elements() == 0) return InvalidArgument("its weight is ", ToString(shape));
  const std::vector<int64_t> kernel(shape.dims().begin() + 2, shape.dims().end());
  if (node.Ints("kernel_shape", kernel) != kernel) return InvalidArgument("its kernel_shape is not its weight's");
  WEFT_ASSIGN_OR_RETURN(const Window w, WindowOf(node, x.shape(), kernel));
  const int64_t groups = node.Int("group", 1), out = shape.dim(0);
  if (groups < 1 || out % groups != 0 || x.dim(1) != shape.dim(1) * groups) {
    return InvalidArgument("its weight ", ToString(shape), " and ", groups, " groups do not fit ", ToString(x.shape()));
  }
  const Var rows = Reshape(weight, {groups, out / groups, shape.dim(1) * w.taps()});
  Shape result = {x.dim(0), out}, bias = {out};
  for (int64_t size : w.out) {
    result.Append(size);
    bias.Append(1);
  }
  const Var y = Reshape(MatMul(rows, Columns(x, w, groups)), result);
  return VarList{node.has(2) ? y + Reshape(node.in(2), bias) : y};
}

absl::StatusOr<Window> PoolWindow(const OnnxNode& node) {
  if (node.output_count() > 1) return absl::UnimplementedError("the indices of the greatest elements");
  return WindowOf(node, node.in(0).shape(), node.Ints("kernel_shape"));
}
OnnxResult MaxPool(const OnnxNode& node) {
  WEFT_ASSIGN_OR_RETURN(const Window w, PoolWindow(node));
  constexpr double kNone = -std::numeric_limits<double>::infinity();
  const VarList slices = Slices(node.in(0), w, kNone, kNone);
  return VarList{std::accumulate(slices.begin() + 1, slices.end(), slices[0], Maximum)};
}
// Divides by the number of elements in the window; padding counts if the node says so.
OnnxResult AveragePool(const OnnxNode& node) {
  WEFT_ASSIGN_OR_RETURN(const Window w, PoolWindow(node));
  const Var x = node.in(0);
  Shape one = x.shape();
  for (int i = 0; i < 2; ++i) one.set_dim(i, 1);
  const VarList slices = Slices(x, w, 0, 0);
  const VarList counts = Slices(Fill(x.tape, {x.dtype(), one}, 1), w, node.Int("count_include_pad", 0) != 0 ? 1 : 0, 0);
  const auto sum = [](const VarList& parts) { return std::accumulate(parts.begin() + 1, parts.end(), parts[0], Add); };
  const Var total = sum(slices);
  return VarList{total / sum(counts)};
}
template <Var (*reduce)(Var, AxisSpan, bool)>
OnnxResult Global(const OnnxNode& node) {
  return VarList{reduce(node.in(0), Sequence(2, node.in(0).shape().rank()), true)};
}

constexpr OnnxOp kOps[] = {
    {"AveragePool", AveragePool},
    {"BatchNormalization", BatchNormalization},
    {"CausalConvWithState", CausalConv},
    {"Conv", Conv},
    {"Dropout", DropoutOf},
    {"Einsum", Einsum},
    {"Gemm", Gemm},
    {"GlobalAveragePool", Global<Mean>},
    {"GlobalMaxPool", Global<Max>},
    {.name = "GroupNormalization", .build = GroupNormalization, .since = 21},
    {"InstanceNormalization", InstanceNormalization},
    {"LayerNormalization", LayerNormalization},
    {.name = "LogSoftmax", .build = AlongAxis<LogSoftmax>, .since = 13},
    {"MatMul", MatMulOf},
    {"MaxPool", MaxPool},
    {"NegativeLogLikelihoodLoss", NllLoss},
    {"RMSNormalization", RmsNormalization},
    {.name = "Softmax", .build = AlongAxis<Softmax>, .since = 13},
    {"SoftmaxCrossEntropyLoss", SoftmaxCrossEntropy},
};

}  // namespace

absl::Span<const OnnxOp> OnnxLayers() { return kOps; }

}  // namespace weft
