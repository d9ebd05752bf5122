// Records ONNX's reductions, running sums and searches.
#include <limits>
#include <numeric>

#include "weft/tests/onnx/tables.h"

namespace weft {
namespace {

// The operand of a reduction, and its axes: an attribute of the node or, since opset 13 or 18, an input. A node without
// axes reduces all of them or, with the attribute noop_with_empty_axes, none.
struct Reduced {
  Var x;
  std::vector<int> axes;
  bool keep;
};
Reduced ReducedOf(const CaseNode& node) {
  Reduced r = {.x = node.in(0), .keep = node.Int("keepdims", 1) != 0};
  const std::vector<int64_t> axes = node.has(1) ? node.Integers(1) : node.Ints("axes");
  r.axes.assign(axes.begin(), axes.end());
  if (r.axes.empty() && node.Int("noop_with_empty_axes", 0) == 0) {
    r.axes.resize(static_cast<size_t>(r.x.shape().rank()));
    std::iota(r.axes.begin(), r.axes.end(), 0);
  }
  return r;
}

template <Var (*reduce)(Var, AxisSpan, bool)>
CaseResult Reduce(const CaseNode& node) {
  const Reduced r = ReducedOf(node);
  return VarList{reduce(r.x, r.axes, r.keep)};
}
Var SumSquare(Var x, AxisSpan axes, bool keep) { return Sum(Square(x), axes, keep); }
Var LogSum(Var x, AxisSpan axes, bool keep) { return Log(Sum(x, axes, keep)); }
Var L1(Var x, AxisSpan axes, bool keep) { return Norm(x, axes, 1, keep); }
Var L2(Var x, AxisSpan axes, bool keep) { return Norm(x, axes, 2, keep); }

// Records a maximum or minimum, also of bools. If x has no elements, the maximum is -∞ and the minimum is ∞.
template <Var (*reduce)(Var, AxisSpan, bool), bool max>
CaseResult Extreme(const CaseNode& node) {
  const Reduced r = ReducedOf(node);
  if (r.x.dtype() == kBool) return VarList{Cast(reduce(Cast(r.x, kF32), r.axes, r.keep), kBool)};
  if (r.x.shape().elements() == 0) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    return VarList{FillLike(Sum(r.x, r.axes, r.keep), max ? -kInfinity : kInfinity)};
  }
  return VarList{reduce(r.x, r.axes, r.keep)};
}
CaseResult EmptyLogSumExp(const CaseNode& node) {
  const Reduced r = ReducedOf(node);
  if (r.x.shape().elements() == 0) return VarList{Log(Sum(r.x, r.axes, r.keep))};
  return VarList{LogSumExp(r.x, r.axes, r.keep)};
}

CaseResult CumSum(const CaseNode& node) {
  const int axis = static_cast<int>(node.Integers(1)[0]);
  const bool reverse = node.Int("reverse", 0) != 0;
  Var y = CumulativeSum(Transpose(node.in(0), axis, -1), reverse);
  const int64_t n = y.dim(-1);
  if (node.Int("exclusive", 0) != 0) {  // sums of the elements before each one, or after it if reversed
    y = reverse ? Slice(Pad(y, -1, 0, 1), -1, 1, n + 1) : Slice(Pad(y, -1, 1, 0), -1, 0, n);
  }
  return VarList{Transpose(y, axis, -1)};
}

CaseResult ArgMaxOf(const CaseNode& node) {
  const int axis = static_cast<int>(node.Int("axis", 0));
  const bool last = node.Int("select_last_index", 0) != 0;
  const Var rows = Transpose(node.in(0), axis, -1);
  Var at = ArgMax(last ? Flip(rows, -1) : rows);
  if (last) at = Number(at, static_cast<double>(rows.dim(-1) - 1)) - at;
  const Var kept = Transpose(Unsqueeze(at, -1), axis, -1);
  return VarList{node.Int("keepdims", 1) != 0 ? kept : Squeeze(kept, {axis})};
}

CaseResult TopKOf(const CaseNode& node) {
  const int axis = static_cast<int>(node.Int("axis", -1));
  const bool largest = node.Int("largest", 1) != 0;
  const Var rows = Transpose(node.in(0), axis, -1);
  VarList y = TopK(largest ? rows : -rows, node.Integers(1)[0]);
  if (!largest) y[0] = -y[0];
  return VarList{Transpose(y[0], axis, -1), Transpose(y[1], axis, -1)};
}

constexpr CaseOp kOps[] = {
    {"ArgMax", ArgMaxOf},
    {"CumSum", CumSum},
    {"ReduceL1", Reduce<L1>},
    {"ReduceL2", Reduce<L2>},
    {"ReduceLogSum", Reduce<LogSum>},
    {"ReduceLogSumExp", EmptyLogSumExp},
    {"ReduceMax", Extreme<Max, true>},
    {"ReduceMean", Reduce<Mean>},
    {"ReduceMin", Extreme<Min, false>},
    {"ReduceProd", Reduce<Prod>},
    {"ReduceSum", Reduce<Sum>},
    {"ReduceSumSquare", Reduce<SumSquare>},
    {"TopK", TopKOf},
};

}  // namespace

absl::Span<const CaseOp> OnnxReductions() { return kOps; }

}  // namespace weft
