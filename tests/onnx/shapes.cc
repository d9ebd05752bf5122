// Records ONNX's ops that create, move and gather elements.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "weft/tests/onnx/tables.h"

namespace weft {
namespace {

int Axis(const CaseNode& node, int otherwise) { return static_cast<int>(node.Int("axis", otherwise)); }
int FromFront(int64_t axis, int rank) { return static_cast<int>(axis < 0 ? axis + rank : axis); }

CaseResult ReshapeOf(const CaseNode& node) {
  const Var x = node.in(0);
  const std::vector<int64_t> wanted = node.Integers(1);
  Shape shape;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const bool copied = wanted[i] == 0 && node.Int("allowzero", 0) == 0;
    shape.Append(copied ? x.dim(static_cast<int>(i)) : wanted[i]);
  }
  return VarList{Reshape(x, shape)};
}

CaseResult Flatten(const CaseNode& node) {
  const Shape shape = node.in(0).shape();
  const int axis = FromFront(Axis(node, 1), shape.rank());
  return VarList{Reshape(node.in(0), {shape.Product(0, axis), shape.Product(axis, shape.rank())})};
}

CaseResult TransposeOf(const CaseNode& node) {
  const int rank = node.in(0).shape().rank();
  std::vector<int> order(static_cast<size_t>(rank));
  for (int i = 0; i < rank; ++i) order[i] = rank - 1 - i;
  const std::vector<int64_t> given = node.Ints("perm");
  if (!given.empty()) order.assign(given.begin(), given.end());
  return VarList{Permute(node.in(0), order)};
}

std::vector<int> AxesInput(const CaseNode& node) {
  const std::vector<int64_t> axes = node.has(1) ? node.Integers(1) : node.Ints("axes");
  return {axes.begin(), axes.end()};
}

CaseResult SqueezeOf(const CaseNode& node) { return VarList{Squeeze(node.in(0), AxesInput(node))}; }

// The axes refer to the result.
CaseResult UnsqueezeOf(const CaseNode& node) {
  std::vector<int> axes = AxesInput(node);
  const int rank = node.in(0).shape().rank() + static_cast<int>(axes.size());
  for (int& axis : axes) axis = FromFront(axis, rank);
  std::sort(axes.begin(), axes.end());
  Var y = node.in(0);
  for (int axis : axes) y = Unsqueeze(y, axis);
  return VarList{y};
}

CaseResult ConcatOf(const CaseNode& node) {
  VarList parts;
  for (size_t i = 0; i < node.input_count(); ++i) parts.push_back(node.in(i));
  return VarList{Concat(parts, Axis(node, 0))};
}

// Splits x into parts of the given sizes. Without sizes, splits it into equal parts, of which the last may be smaller.
CaseResult SplitOf(const CaseNode& node) {
  const Var x = node.in(0);
  const int axis = Axis(node, 0);
  const int64_t n = x.dim(axis), parts = static_cast<int64_t>(node.output_count());
  std::vector<int64_t> sizes;
  if (node.has(1)) {
    sizes = node.Integers(1);
  } else {
    const int64_t each = (n + parts - 1) / parts;
    for (int64_t begin = 0; begin < parts * each; begin += each) sizes.push_back(std::min(each, n - begin));
  }
  VarList y;
  int64_t begin = 0;
  for (int64_t size : sizes) {
    y.push_back(Slice(x, axis, begin, begin + size));
    begin += size;
  }
  return y;
}

// Returns every `stride`-th element along the axis, beginning with the first.
Var Every(Var x, int axis, int64_t stride) {
  if (stride == 1) return x;
  const Shape shape = x.shape();
  const int64_t count = (shape.dim(axis) + stride - 1) / stride;
  Shape split(shape.dims().first(axis));
  for (int64_t dim : {count, stride}) split.Append(dim);
  for (int64_t dim : shape.dims().subspan(axis + 1)) split.Append(dim);
  const Var whole = Pad(x, axis, 0, count * stride - shape.dim(axis));
  return Squeeze(Slice(Reshape(whole, split), axis + 1, 0, 1), {axis + 1});
}

CaseResult SliceOf(const CaseNode& node) {
  Var y = node.in(0);
  const std::vector<int64_t> starts = node.Integers(1), ends = node.Integers(2);
  std::vector<int64_t> axes(starts.size()), strides(starts.size(), 1);
  std::iota(axes.begin(), axes.end(), 0);
  if (node.has(3)) axes = node.Integers(3);
  if (node.has(4)) strides = node.Integers(4);
  for (size_t i = 0; i < starts.size(); ++i) {
    const int axis = FromFront(axes[i], y.shape().rank());
    const int64_t n = y.dim(axis);
    int64_t begin = starts[i] < 0 ? starts[i] + n : starts[i], end = ends[i] < 0 ? ends[i] + n : ends[i];
    // If the stride is negative, flips the axis: element i becomes element n - 1 - i. So elements begin, ..., end + 1
    // become elements n - 1 - begin, ..., n - 2 - end.
    if (strides[i] < 0) {
      y = Flip(y, axis);
      begin = n - 1 - std::clamp<int64_t>(begin, -1, n - 1);
      end = n - 1 - std::clamp<int64_t>(end, -1, n - 1);
    }
    begin = std::clamp<int64_t>(begin, 0, n);
    y = Every(Slice(y, axis, begin, std::clamp(end, begin, n)), axis, std::abs(strides[i]));
  }
  return VarList{y};
}

Shape ShapeOf(const std::vector<int64_t>& dims) { return Shape(absl::MakeConstSpan(dims)); }

CaseResult Expand(const CaseNode& node) {
  const Shape wanted = ShapeOf(node.Integers(1));
  return VarList{BroadcastTo(node.in(0), Broadcast(node.in(0).shape(), wanted).value_or(wanted))};
}

CaseResult Tile(const CaseNode& node) {
  Var y = node.in(0);
  const std::vector<int64_t> repeats = node.Integers(1);
  for (size_t axis = 0; axis < repeats.size(); ++axis) {
    y = Concat(VarList(static_cast<size_t>(repeats[axis]), y), static_cast<int>(axis));
  }
  return VarList{y};
}

CaseResult ConstantOfShape(const CaseNode& node) {
  const bool given = node.HasAttribute("value");
  const TensorType type = {given ? node.Value("value").type.dtype : kF32, ShapeOf(node.Integers(0))};
  return VarList{Fill(node.tape(), type, given ? Doubles(node.Value("value"))[0] : 0)};
}

CaseResult Range(const CaseNode& node) {
  const double start = node.Number(0), delta = node.Number(2);
  const int64_t n = std::max<int64_t>(0, static_cast<int64_t>(std::ceil((node.Number(1) - start) / delta)));
  const DType dtype = node.in(0).dtype();
  const Var indices = Cast(Iota(node.tape(), kI32, n), ComputedIn(dtype));
  return VarList{Cast(start + indices * delta, dtype)};
}

CaseResult Trilu(const CaseNode& node) {
  const int64_t diagonal = node.has(1) ? node.Integers(1)[0] : 0;
  return VarList{node.Int("upper", 1) != 0 ? Triu(node.in(0), diagonal) : Tril(node.in(0), diagonal)};
}

// A negative index counts from the end.
Var Positive(Var ids, int64_t n) { return Where(Less(ids, Number(ids, 0)), ids + static_cast<double>(n), ids); }

CaseResult GatherOf(const CaseNode& node) {
  const int axis = Axis(node, 0);
  return VarList{Gather(node.in(0), Positive(node.in(1), node.in(0).dim(axis)), axis)};
}

// Returns x, with integers and bools cast to f64, which represents all of them exactly.
Var InFloats(Var x) { return IsFloat(x.dtype()) ? x : Cast(x, kF64); }

CaseResult GatherElements(const CaseNode& node) {
  const Var x = node.in(0);
  const int axis = Axis(node, 0);
  return VarList{Cast(TakeAlong(InFloats(x), Positive(node.in(1), x.dim(axis)), axis), x.dtype())};
}

// Views x as a matrix [count, rest]. Each slice of `ids` along its last axis, of size k, is an index into k axes of x,
// from axis `batch` on. RowsOf turns the slice into the number of a row of the matrix.
struct Rows {
  Var ids;  // [...]
  int64_t count = 1, rest = 1;
};
Rows RowsOf(Var x, Var ids, int batch) {
  const Shape shape = x.shape();
  const int k = static_cast<int>(ids.dim(-1));
  Rows rows = {.count = shape.Product(0, batch + k), .rest = shape.Product(batch + k, shape.rank())};
  const VarList parts = Split(ids, -1, k);
  for (int i = 0; i < k; ++i) {
    const int64_t n = shape.dim(batch + i);
    const Var part = Positive(Squeeze(parts[i], {-1}), n);
    rows.ids = i == 0 ? part : rows.ids * static_cast<double>(n) + part;
  }
  int64_t stride = shape.Product(batch, batch + k);
  for (int i = batch - 1; i >= 0; --i) {  // ids has the batch axes too
    Shape along;
    for (int j = 0; j < rows.ids.shape().rank(); ++j) along.Append(j == i ? shape.dim(i) : 1);
    const Var indices = Iota(x.tape, kI32, shape.dim(i));
    rows.ids = rows.ids + Reshape(indices * static_cast<double>(stride), along);
    stride *= shape.dim(i);
  }
  return rows;
}

CaseResult GatherNd(const CaseNode& node) {
  const Var x = node.in(0), ids = node.in(1);
  const int batch = static_cast<int>(node.Int("batch_dims", 0));
  const Rows rows = RowsOf(x, ids, batch);
  Shape shape(ids.shape().dims().first(ids.shape().rank() - 1));
  for (int i = batch + static_cast<int>(ids.dim(-1)); i < x.shape().rank(); ++i) shape.Append(x.dim(i));
  const Var table = Reshape(InFloats(x), {rows.count, rows.rest});
  return VarList{Cast(Reshape(Gather(table, rows.ids, 0), shape), x.dtype())};
}

// Returns x after adding `updates` to its elements at `ids` along the axis. If `reduction` is "none", `updates` replace
// the elements instead.
CaseResult Scatter(Var x, Var ids, Var updates, int axis, const std::string& reduction) {
  if (reduction == "add") return VarList{ScatterAdd(x, ids, updates, axis)};
  if (reduction != "none") return absl::UnimplementedError("scattering by " + reduction);
  const Var zero = FillLike(x, 0), kept = Equal(ScatterAdd(zero, ids, FillLike(updates, 1), axis), zero);
  return VarList{Where(kept, x, ScatterAdd(zero, ids, updates, axis))};
}

CaseResult ScatterElements(const CaseNode& node) {
  const int axis = Axis(node, 0);
  return Scatter(node.in(0), Positive(node.in(1), node.in(0).dim(axis)), node.in(2), axis,
                 node.String("reduction", "none"));
}

CaseResult ScatterNd(const CaseNode& node) {
  const Var x = node.in(0);
  const Rows rows = RowsOf(x, node.in(1), 0);
  const int64_t n = rows.ids.shape().elements();
  const Var ids = BroadcastTo(Reshape(rows.ids, {n, 1}), {n, rows.rest});
  CaseResult y = Scatter(Reshape(x, {rows.count, rows.rest}), ids, Reshape(node.in(2), {n, rows.rest}), 0,
                         node.String("reduction", "none"));
  if (y.ok()) y->front() = Reshape(y->front(), x.shape());
  return y;
}

// Returns one-hot vectors along a new axis: the "on" value at each id, the "off" value elsewhere.
CaseResult OneHotOf(const CaseNode& node) {
  const int64_t n = static_cast<int64_t>(node.Number(1));
  const Var values = node.in(2);
  const Var hot = OneHot(Positive(Cast(node.in(0), kI32), n), n, kBool);
  const Var off = Slice(values, 0, 0, 1), on = Slice(values, 0, 1, 2);
  const Var y = Where(hot, on, off);
  const int rank = y.shape().rank(), axis = FromFront(Axis(node, -1), rank);
  std::vector<int> order;
  for (int i = 0; i < rank - 1; ++i) order.push_back(i);
  order.insert(order.begin() + axis, rank - 1);
  return VarList{Permute(y, order)};
}

constexpr CaseOp kOps[] = {
    {"Concat", ConcatOf},
    {"ConstantOfShape", ConstantOfShape},
    {"Expand", Expand},
    {"Flatten", Flatten},
    {"Gather", GatherOf},
    {"GatherElements", GatherElements},
    {"GatherND", GatherNd},
    {"OneHot", OneHotOf},
    {"Range", Range},
    {"Reshape", ReshapeOf},
    {"Scatter", ScatterElements},
    {"ScatterElements", ScatterElements},
    {"ScatterND", ScatterNd},
    {"Slice", SliceOf},
    {"Split", SplitOf},
    {"Squeeze", SqueezeOf},
    {"Tile", Tile},
    {"Transpose", TransposeOf},
    {"Trilu", Trilu},
    {"Unsqueeze", UnsqueezeOf},
};

}  // namespace

absl::Span<const CaseOp> OnnxShapes() { return kOps; }

}  // namespace weft
