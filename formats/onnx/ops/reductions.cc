// Records ONNX's reductions, running sums and searches.
#include <limits>
#include <numeric>

#include "weft/formats/onnx/onnx_node.h"

namespace weft {
namespace {

// The operand of a reduction, and its axes: an attribute of the node or, since opset 13 or 18, an input. A node without
// axes reduces all of them or, with the attribute noop_with_empty_axes, none.
struct Reduced {
  Var x;
  std::vector<int> axes;
  bool keep;
};
absl::StatusOr<Reduced> ReducedOf(const OnnxNode& node) {
  Reduced r = {.x = node.in(0), .axes = {}, .keep = node.Int("keepdims", 1) != 0};
  std::vector<int64_t> axes = node.Ints("axes");
  if (node.has(1)) {
    WEFT_ASSIGN_OR_RETURN(axes, node.Integers(1));
  }
  for (int64_t given : axes) {
    WEFT_ASSIGN_OR_RETURN(const int axis, node.Axis(given, r.x.shape().rank()));
    r.axes.push_back(axis);
  }
  const bool all = node.Int("noop_with_empty_axes", 0) == 0;
  if (r.axes.empty() && all) {
    r.axes.resize(static_cast<size_t>(r.x.shape().rank()));
    std::iota(r.axes.begin(), r.axes.end(), 0);
  }
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
OnnxResult EmptyLogSumExp(const OnnxNode& node) {
  WEFT_ASSIGN_OR_RETURN(const Reduced r, ReducedOf(node));
  if (r.x.shape().elements() == 0) return VarList{Log(Sum(r.x, r.axes, r.keep))};
  return VarList{LogSumExp(r.x, r.axes, r.keep)};
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
    {"ArgMax", ArgExtreme<true>},
    {"ArgMin", ArgExtreme<false>},
    {"CumSum", CumSum, OnnxIntegers::kWraps},
    {"ReduceL1", Reduce<L1>},
    {"ReduceL2", Reduce<L2>},
    {"ReduceLogSum", Reduce<LogSum>},
    {"ReduceLogSumExp", EmptyLogSumExp},
    {"ReduceMax", Extreme<Max, true>, OnnxIntegers::kMoves},
    {"ReduceMean", Reduce<Mean>},
    {"ReduceMin", Extreme<Min, false>, OnnxIntegers::kMoves},
    {"ReduceProd", Reduce<Prod>, OnnxIntegers::kWraps},
    {"ReduceSum", Reduce<Sum>, OnnxIntegers::kWraps},
    {"ReduceSumSquare", Reduce<SumSquare>},
    {"TopK", TopKOf},
};

}  // namespace

absl::Span<const OnnxOp> OnnxReductions() { return kOps; }

}  // namespace weft
