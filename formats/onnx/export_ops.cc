// Each function here writes the nodes of one op and returns the name of its output.
#include <cmath>
#include <limits>
#include <numeric>

#include "absl/algorithm/container.h"
#include "weft/base/status.h"
#include "weft/formats/onnx/write_graph.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/attributes.h"
#include "weft/ops/kernels/rows/axis.h"
#include "weft/ops/product/matmul.h"

namespace weft {
namespace {

using Names = OnnxWriter::Names;
using N = const ExportedNode&;
using Writer = std::string (*)(N);
constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::string Fail(N n, absl::string_view problem) { return n.writer.Fail(InvalidArgument(problem)); }

std::string CastTo(N n, const std::string& x, DType dtype) { return n.Write("Cast", {x}, {{"to", OnnxType(dtype)}}); }

// Inputs of i32 are i64 in the model.
std::string Input(N n) {
  const std::string& name = n.recordings[0].input(n.node()).name;
  return n.dtype() == kI32 ? CastTo(n, name, kI32) : name;
}

std::string Parameter(N n) { return n.recordings[0].parameter(n.node()).name; }

// A constant whose number of rows differs is a slice of the last recording's: its first rows or, of a table of
// distances, those in its middle.
std::string Constant(N n) {
  const auto type = [&](size_t i) { return n.recordings[i].constant(n.node(i)).type; };
  const auto bytes = [&](size_t i) {
    const std::vector<std::byte>& data = *n.recordings[i].constant(n.node(i)).bytes;
    return absl::string_view(reinterpret_cast<const char*>(data.data()), data.size());
  };
  const size_t last = n.recordings.size() - 1;
  const OnnxSize rows = n.Each([&](size_t i) { return type(i).shape.dim(0); });
  const size_t row = bytes(last).size() / static_cast<size_t>(std::max<int64_t>(rows[last], 1));
  const std::string whole = n.writer.Constant(OnnxType(n.dtype()), type(last).shape.dims(), bytes(last));
  for (const int64_t halves : {0, 1}) {
    const OnnxSize begin = n.Each([&](size_t i) { return (rows[last] - rows[i]) * halves / 2; });
    bool fits = true;
    for (size_t i = 0; i < last; ++i) {
      TensorType as_last = type(i);
      if (as_last.shape.rank() > 0) as_last.shape.set_dim(0, rows[last]);
      fits = fits && as_last == type(last) && begin[i] >= 0 &&
             bytes(last).substr(static_cast<size_t>(begin[i]) * row, bytes(i).size()) == bytes(i);
    }
    if (!fits) continue;
    if (IsFixed(rows)) return whole;
    if (!n.writer.IsBounded(rows)) return Fail(n, "a table has rows for each index of a dimension without a limit");
    const OnnxSize end = n.Each([&](size_t i) { return begin[i] + rows[i]; });
    return n.Write("Slice", {whole, n.writer.Shape({begin}), n.writer.Shape({end}), n.writer.Integers({0})});
  }
  return Fail(n, "a constant has other values at other sizes");
}

// In ONNX's shapes, 0 stands for the size of the same axis of x, and -1 for the size that is left.
std::string Reshape(N n) {
  const OnnxSizes from = n.input_shape(0), to = n.output_shape();
  std::vector<int64_t> target;
  for (size_t axis = 0; axis < to.size(); ++axis) {
    const bool same = axis < from.size() && from[axis] == to[axis];
    target.push_back(IsFixed(to[axis]) && to[axis][0] != 0 ? to[axis][0] : same ? 0 : -1);
  }
  const bool simple = absl::c_count(target, -1) <= 1;
  return n.Write("Reshape", {n.inputs[0], simple ? n.writer.Integers(target) : n.writer.Shape(to)});
}

std::string BroadcastTo(N n) { return n.Write("Expand", {n.inputs[0], n.writer.Shape(n.output_shape())}); }

std::string Fill(N n) {
  const auto value = [&](size_t i) { return n.attrs<FillAttrs>(i).value; };
  bool fixed = true, whole = true;
  for (size_t i = 0; i < n.recordings.size(); ++i) {
    fixed = fixed && (value(i) == value(0) || std::isnan(value(0)));
    whole = whole && std::abs(value(i)) < 1e9 && std::floor(value(i)) == value(i);
  }
  if (!fixed && !whole) return Fail(n, "the number differs between sizes, and is not whole");
  const std::string y = fixed ? n.writer.Number(n.dtype(), value(0))
                              : n.writer.Scalar(n.Each([&](size_t i) { return std::llround(value(i)); }), n.dtype());
  return n.output_shape().empty() ? y : n.Write("Expand", {y, n.writer.Shape(n.output_shape())});
}

// Returns the numbers `begin` .. `end` - 1.
std::string Range(N n, DType dtype, const OnnxSize& begin, const OnnxSize& end) {
  return n.Write("Range", {n.writer.Scalar(begin, dtype), n.writer.Scalar(end, dtype), n.writer.Number(dtype, 1)});
}

std::string Iota(N n) {
  const DType computed = n.dtype() == kBF16 ? kF32 : n.dtype();  // Range lacks bf16
  const std::string y = Range(n, computed, OnnxSize(n.recordings.size(), 0), n.output_shape()[0]);
  return n.dtype() == computed ? y : CastTo(n, y, n.dtype());
}

// A factor that differs between sizes may be 1 / size, as in means.
std::string Scale(N n) {
  const double factor = n.attrs<ScaleAttrs>().factor;
  bool fixed = true, inverse = true;
  const OnnxSize divisor = n.Each([&](size_t i) {
    const double each = n.attrs<ScaleAttrs>(i).factor, size = std::round(1 / each);
    fixed = fixed && each == factor;
    inverse = inverse && std::abs(size) < 1e15 && 1 / size == each;
    return inverse ? static_cast<int64_t>(size) : 0;
  });
  if (fixed) return n.Write("Mul", {n.inputs[0], n.writer.Number(n.dtype(), factor)});
  if (!inverse) return Fail(n, "the factor differs between sizes, and is not 1 / size");
  return n.Write("Div", {n.inputs[0], n.writer.Scalar(divisor, n.dtype())});
}

std::string Cast(N n) { return CastTo(n, n.inputs[0], n.dtype()); }

std::string Permute(N n) {
  const PermuteAttrs attrs = n.attrs<PermuteAttrs>();
  const std::vector<int64_t> axes(attrs.axes.begin(), attrs.axes.begin() + attrs.rank);
  return n.Write("Transpose", n.inputs, {{"perm", axes}});
}

std::string Slice(N n) {
  const OnnxSize begin = n.Each([&](size_t i) { return n.attrs<SliceAttrs>(i).begin; });
  const OnnxSize end = n.Each([&](size_t i) { return n.attrs<SliceAttrs>(i).end; });
  return n.Write("Slice", {n.inputs[0], n.writer.Shape({begin}), n.writer.Shape({end}),
                           n.writer.Integers({n.attrs<SliceAttrs>().axis})});
}

std::string Concat(N n) { return n.Write("Concat", n.inputs, {{"axis", n.attrs<AxisAttrs>().axis}}); }

// Integers divided by 0 are 0.
std::string Div(N n) {
  if (n.dtype() != kI32) return n.Write("Div", n.inputs);
  const std::string zero = n.writer.Number(kI32, 0), by_zero = n.Write("Equal", {n.inputs[1], zero});
  const std::string divisor = n.Write("Where", {by_zero, n.writer.Number(kI32, 1), n.inputs[1]});
  return n.Write("Where", {by_zero, zero, n.Write("Div", {n.inputs[0], divisor})});
}

// Returns `a` where the mask is true, else `b`. onnxruntime's Where lacks bool.
std::string Select(N n, const std::string& mask, const std::string& a, const std::string& b) {
  if (n.dtype() != kBool) return n.Write("Where", {mask, a, b});
  return n.Write("Or", {n.Write("And", {mask, a}), n.Write("And", {n.Write("Not", {mask}), b})});
}

std::string Where(N n) { return Select(n, n.inputs[2], n.inputs[0], n.inputs[1]); }

std::string MaskFill(N n) {
  return Select(n, n.inputs[1], n.writer.Number(n.dtype(), n.attrs<MaskAttrs>().value), n.inputs[0]);
}

std::string BandMask(N n) {
  const auto [value, left, right] = n.attrs<BandMaskAttrs>();
  const OnnxSizes shape = n.input_shape(0);
  const OnnxSize &sources = shape.back(), &targets = shape[shape.size() - 2];
  const OnnxSize first = n.Each([&](size_t i) { return sources[i] - targets[i]; });
  std::vector<int64_t> axes = {1};  // those to insert, so that targets are [T, 1] or [B, 1, ..., T, 1]
  if (n.inputs.size() > 1) {
    axes.assign(shape.size() - 2, static_cast<int64_t>(shape.size()) - 1);
    std::iota(axes.begin(), axes.end() - 1, 1);
  }
  const std::string positions = n.inputs.size() > 1 ? n.inputs[1] : Range(n, kI32, first, sources);
  const std::string target = n.Write("Unsqueeze", {positions, n.writer.Integers(axes)});
  const std::string source = Range(n, kI32, OnnxSize(n.recordings.size(), 0), sources);
  const std::string distance = n.Write("Sub", {source, target});
  std::string hidden;
  const auto limit = [&](const char* type, int64_t side, int64_t most) {
    if (side < 0 || side >= std::numeric_limits<int32_t>::max()) return;
    const std::string beyond = n.Write(type, {distance, n.writer.Number(kI32, static_cast<double>(most))});
    hidden = hidden.empty() ? beyond : n.Write("Or", {hidden, beyond});
  };
  limit("Less", left, -left);
  limit("Greater", right, right);
  return hidden.empty() ? n.inputs[0] : Select(n, hidden, n.writer.Number(n.dtype(), value), n.inputs[0]);
}

std::string MatMul(N n) {
  const MatMulAttrs attrs = n.attrs<MatMulAttrs>();
  Names operands;
  for (const size_t i : {0, 1}) {
    std::string x = n.inputs[i];
    if (i == 0 ? attrs.transpose_a : attrs.transpose_b) {
      std::vector<int64_t> order(n.input_shape(i).size());
      std::iota(order.begin(), order.end(), 0);
      std::swap(order[order.size() - 1], order[order.size() - 2]);
      x = n.Write("Transpose", {x}, {{"perm", order}});
    }
    operands.push_back(attrs.f32_output ? CastTo(n, x, kF32) : x);
  }
  return n.Write("MatMul", operands);
}

std::string MatMulAdd(N n) { return n.Write("Add", {MatMul(n), n.inputs[2]}); }

// Ids outside the table give zeros. The bounds of an input may exclude them.
std::string Embedding(N n) {
  const std::string &table = n.inputs[0], &ids = n.inputs[1], zero = n.writer.Number(kI32, 0);
  const OnnxSize rows = n.input_shape(0)[0];
  const Node& source = n.recordings[0].producer(n.node().inputs[1]);
  const InputBounds bounds = source.op == &kInputOp ? n.recordings[0].input(source).bounds : InputBounds{};
  const bool known = bounds.below > 0 && bounds.below <= rows[0] && bounds.ignored == InputBounds{}.ignored;
  if (known) return n.Write("Gather", {table, ids});
  const std::string least = n.Write("GreaterOrEqual", {ids, zero});
  const std::string inside = n.Write("And", {least, n.Write("Less", {ids, n.writer.Scalar(rows, kI32)})});
  const std::string found = n.Write("Gather", {table, n.Write("Where", {inside, ids, zero})});
  const std::string mask = n.Write("Unsqueeze", {inside, n.writer.Integers({-1})});
  return n.Write("Where", {mask, found, n.writer.Number(n.dtype(), 0)});
}

std::string ReduceMax(N n, int64_t axis) {
  return n.Write("ReduceMax", {n.inputs[0]}, {{"axes", std::vector<int64_t>{axis}}});
}
std::string Max(N n) { return ReduceMax(n, n.attrs<AxisAttrs>().axis); }

std::string Sum(N n) {
  const int axis = n.attrs<BlockAttrs>().axis;
  if (n.output_shape()[static_cast<size_t>(axis)] != OnnxSize(n.recordings.size(), 1)) return Fail(n, "sums of parts");
  const std::string x = n.input_dtype(0) == n.dtype() ? n.inputs[0] : CastTo(n, n.inputs[0], n.dtype());
  return n.Write("ReduceSum", {x, n.writer.Integers({axis})});
}

std::string CumulativeSum(N n) {
  const std::string axis = n.writer.Number(kI32, static_cast<double>(n.output_shape().size()) - 1);
  return n.Write("CumSum", {n.inputs[0], axis}, {{"reverse", n.attrs<CumulativeSumAttrs>().reverse ? 1 : 0}});
}

// A row without any number except -infinity gives zeros here, and NaN in ONNX.
std::string Softmax(N n) {
  const std::string y = n.Write("Softmax", n.inputs);
  const Node& source = n.recordings[0].producer(n.node().inputs[0]);
  if (source.op != &kMaskFill || source.attrs.as<MaskAttrs>().value != -kInfinity) return y;
  const std::string empty = n.Write("Equal", {ReduceMax(n, -1), n.writer.Number(n.dtype(), -kInfinity)});
  return n.Write("Where", {empty, n.writer.Number(n.dtype(), 0), y});
}

std::string LayerNorm(N n) {
  return n.Write("LayerNormalization", n.inputs, {{"epsilon", n.attrs<NormAttrs>().epsilon}});
}

Names Split(N n) {
  return n.writer.Nodes("Split", n.inputs, n.node().output_count, {{"axis", n.attrs<SplitAttrs>().axis}});
}

// ONNX's indices are i64.
Names TopK(N n) {
  Names outputs = n.writer.Nodes("TopK", {n.inputs[0], n.writer.Shape({n.Shape(n.node().output(0)).back()})}, 2);
  outputs[1] = CastTo(n, outputs[1], kI32);
  return outputs;
}

// Ops that are one node with the same inputs, and no attributes or the default ones.
constexpr std::pair<const OpDef*, const char*> kSame[] = {
    {&kAdd, "Add"},     {&kSub, "Sub"},         {&kMul, "Mul"},
    {&kMinimum, "Min"}, {&kMaximum, "Max"},     {&kPow, "Pow"},
    {&kEqual, "Equal"}, {&kLess, "Less"},       {&kLessEqual, "LessOrEqual"},
    {&kAnd, "And"},     {&kOr, "Or"},           {&kExp, "Exp"},
    {&kLog, "Log"},     {&kSqrt, "Sqrt"},       {&kErf, "Erf"},
    {&kTanh, "Tanh"},   {&kSigmoid, "Sigmoid"}, {&kSoftplus, "Softplus"},
    {&kRelu, "Relu"},   {&kAbs, "Abs"},         {&kLogSoftmax, "LogSoftmax"}};

// Ops with one output that a function writes.
constexpr std::pair<const OpDef*, Writer> kWritten[] = {{&kInputOp, Input},
                                                        {&kParameterOp, Parameter},
                                                        {&kConstantOp, Constant},
                                                        {&kReshape, Reshape},
                                                        {&kBroadcastTo, BroadcastTo},
                                                        {&kFill, Fill},
                                                        {&kIota, Iota},
                                                        {&kScale, Scale},
                                                        {&kCast, Cast},
                                                        {&kPermute, Permute},
                                                        {&kSlice, Slice},
                                                        {&kConcat, Concat},
                                                        {&kDiv, Div},
                                                        {&kWhere, Where},
                                                        {&kMaskFill, MaskFill},
                                                        {&kBandMask, BandMask},
                                                        {&kMatmul, MatMul},
                                                        {&kMatmulAdd, MatMulAdd},
                                                        {&kEmbedding, Embedding},
                                                        {&kMax, Max},
                                                        {&kSumBlocks, Sum},
                                                        {&kCumulativeSum, CumulativeSum},
                                                        {&kSoftmax, Softmax},
                                                        {&kLayerNorm, LayerNorm}};

// Ops with several outputs that a function writes.
constexpr std::pair<const OpDef*, Names (*)(N)> kSeveral[] = {{&kSplit, Split}, {&kTopK, TopK}};

// Ops whose functions take attributes that differ between recordings.
constexpr const OpDef* kSized[] = {&kInputOp, &kConstantOp, &kReshape, &kBroadcastTo, &kFill,
                                   &kIota,    &kScale,      &kSlice,   &kSumBlocks};

template <class Rows>
const auto* Find(const Rows& rows, const OpDef& op) {
  const auto row = absl::c_find_if(rows, [&](const auto& each) { return each.first == &op; });
  return row == std::end(rows) ? nullptr : &*row;
}

}  // namespace

OnnxSizes ExportedNode::Shape(ValueId value) const {
  OnnxSizes shape(static_cast<size_t>(recordings[0].value(value).type.shape.rank()));
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    shape[axis] = Each([&](size_t i) { return recordings[i].value(value).type.shape.dim(static_cast<int>(axis)); });
  }
  return shape;
}

bool HasOnnxOp(const OpDef& op) {
  return Find(kSame, op) != nullptr || Find(kWritten, op) != nullptr || Find(kSeveral, op) != nullptr;
}

bool AttrsMayDiffer(const OpDef& op) { return absl::c_linear_search(kSized, &op); }

Names WriteOnnxOp(const ExportedNode& n) {
  const OpDef& op = *n.node().op;
  if (const auto* const same = Find(kSame, op)) return {n.Write(same->second, n.inputs)};
  if (const auto* const written = Find(kWritten, op)) return {written->second(n)};
  return Find(kSeveral, op)->second(n);
}

}  // namespace weft
