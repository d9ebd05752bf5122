// Records ONNX's ops that create, move and gather elements.
#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/algorithm/container.h"
#include "weft/formats/onnx/onnx_node.h"

namespace weft {
namespace {

OnnxResult ReshapeOf(const OnnxNode& node) {
  const Var x = node.in(0);
  WEFT_ASSIGN_OR_RETURN(const std::vector<int64_t> wanted, node.Integers(1));
  const bool copies = node.Int("allowzero", 0) == 0;
  Shape shape;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const bool copied = wanted[i] == 0 && copies;
    shape.Append(copied ? x.dim(static_cast<int>(i)) : wanted[i]);
  }
  return VarList{Reshape(x, shape)};
}

OnnxResult Flatten(const OnnxNode& node) {
  const Shape shape = node.in(0).shape();
  int axis = shape.rank();  // the axis may also be the number of axes
  if (node.Int("axis", 1) != axis) {
    WEFT_ASSIGN_OR_RETURN(axis, node.AxisOf(node.in(0), 1));
  }
  return VarList{Reshape(node.in(0), {shape.Product(0, axis), shape.Product(axis, shape.rank())})};
}

OnnxResult TransposeOf(const OnnxNode& node) {
  const int rank = node.in(0).shape().rank();
  std::vector<int> order(static_cast<size_t>(rank));
  for (int i = 0; i < rank; ++i) order[i] = rank - 1 - i;
  const std::vector<int64_t> given = node.Ints("perm");
  if (!given.empty()) order.assign(given.begin(), given.end());
  return VarList{Permute(node.in(0), order)};
}

// Without axes, drops all axes of size 1.
OnnxResult SqueezeOf(const OnnxNode& node) {
  const Shape shape = node.in(0).shape();
  WEFT_ASSIGN_OR_RETURN(std::vector<int> axes, node.Axes(shape.rank()));
  absl::c_sort(axes);
  for (int i = 0; i < shape.rank() && !node.has(1) && !node.HasAttribute("axes"); ++i) {
    if (shape.dim(i) == 1) axes.push_back(i);
  }
  return VarList{Squeeze(node.in(0), axes)};
}

OnnxResult UnsqueezeOf(const OnnxNode& node) {
  Var y = node.in(0);
  WEFT_ASSIGN_OR_RETURN(std::vector<int> axes, node.Axes(y.shape().rank(), /*of_result=*/true));
  absl::c_sort(axes);
  for (int axis : axes) y = Unsqueeze(y, axis);
  return VarList{y};
}

OnnxResult ConcatOf(const OnnxNode& node) {
  VarList parts;
  for (size_t i = 0; i < node.input_count(); ++i) parts.push_back(node.in(i));
  if (parts.empty()) return InvalidArgument("it has no inputs");
  return VarList{Concat(parts, static_cast<int>(std::clamp<int64_t>(node.Int("axis", 0), -9, 9)))};
}

// Splits x into parts of the given sizes. Without sizes, the parts are equal, except that the last may be smaller.
OnnxResult SplitOf(const OnnxNode& node) {
  const Var x = node.in(0);
  WEFT_ASSIGN_OR_RETURN(const int axis, node.AxisOf(x, 0));
  const int64_t n = x.dim(axis), parts = static_cast<int64_t>(std::max<size_t>(node.output_count(), 1));
  if (node.Int("num_outputs", parts) != parts) return InvalidArgument("its number of outputs is not num_outputs");
  WEFT_ASSIGN_OR_RETURN(std::vector<int64_t> sizes, node.Integers(1, node.Ints("split")));
  if (sizes.empty() && !node.has(1)) {
    const int64_t each = (n + parts - 1) / parts;
    for (int64_t i = 0; i < parts; ++i) sizes.push_back(std::clamp<int64_t>(n - i * each, 0, each));
  }
  WEFT_RETURN_IF_ERROR(CheckOnnxSteps(static_cast<int64_t>(sizes.size())));
  VarList y;
  int64_t begin = 0;
  for (int64_t size : sizes) {
    if (size < 0 || size > n - begin) return InvalidArgument("its parts are not those of an axis of ", n);
    y.push_back(Slice(x, axis, begin, begin + size));
    begin += size;
  }
  return y;
}

OnnxResult SliceOf(const OnnxNode& node) {
  Var y = node.in(0);
  WEFT_ASSIGN_OR_RETURN(const std::vector<int64_t> starts, node.Integers(1));
  WEFT_ASSIGN_OR_RETURN(const std::vector<int64_t> ends, node.Integers(2));
  WEFT_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, node.Integers(3, Sequence<int64_t>(0, std::ssize(starts))));
  WEFT_ASSIGN_OR_RETURN(const std::vector<int64_t> strides, node.Integers(4, std::vector<int64_t>(starts.size(), 1)));
  if (ends.size() != starts.size() || axes.size() != starts.size() || strides.size() != starts.size()) {
    return InvalidArgument("its starts, ends, axes and steps differ in number");
  }
  for (size_t i = 0; i < starts.size(); ++i) {
    WEFT_ASSIGN_OR_RETURN(const int axis, node.Axis(axes[i], y.shape().rank()));
    const int64_t n = y.dim(axis);
    if (strides[i] == 0 || strides[i] == std::numeric_limits<int64_t>::min()) return InvalidArgument("its step is 0");
    int64_t begin = starts[i] < 0 ? starts[i] + n : starts[i], end = ends[i] < 0 ? ends[i] + n : ends[i];
    // If the stride is negative, flips the axis: element i becomes element n - 1 - i. So elements begin, ..., end + 1
    // become elements n - 1 - begin, ..., n - 2 - end. A begin before the axis is its first element.
    if (strides[i] < 0) {
      y = Flip(y, axis);
      begin = n - 1 - std::clamp<int64_t>(begin, 0, std::max<int64_t>(n - 1, 0));
      end = n - 1 - std::clamp<int64_t>(end, -1, n - 1);
    }
    begin = std::clamp<int64_t>(begin, 0, n);
    y = Every(Slice(y, axis, begin, std::clamp(end, begin, n)), axis, std::min(std::abs(strides[i]), std::max(n, 1L)));
  }
  return VarList{y};
}

Shape ShapeOf(const std::vector<int64_t>& dims) { return Shape(absl::MakeConstSpan(dims)); }

OnnxResult Expand(const OnnxNode& node) {
  WEFT_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, node.Integers(1));
  const Shape wanted = ShapeOf(sizes);
  return VarList{BroadcastTo(node.in(0), Broadcast(node.in(0).shape(), wanted).value_or(wanted))};
}

OnnxResult Tile(const OnnxNode& node) {
  Var y = node.in(0);
  WEFT_ASSIGN_OR_RETURN(const std::vector<int64_t> repeats, node.Integers(1));
  if (repeats.size() != static_cast<size_t>(y.shape().rank()))
    return InvalidArgument("its repeats are not one an axis");
  for (int axis = 0; axis < y.shape().rank() && node.tape()->status().ok(); ++axis) {
    if (repeats[axis] == 1) continue;
    const Shape shape = y.shape();
    Shape apart(shape.dims().first(axis)), whole = shape;
    for (int64_t dim : {repeats[axis], shape.dim(axis)}) apart.Append(dim);
    for (int64_t dim : shape.dims().subspan(axis + 1)) apart.Append(dim);
    whole.set_dim(axis, std::clamp<int64_t>(repeats[axis], 0, 1L << 40) * shape.dim(axis));
    if (shape.rank() == Shape::kMaxRank) return absl::UnimplementedError("tiles of six axes");
    y = Reshape(BroadcastTo(Unsqueeze(y, axis), apart), whole);
  }
  return VarList{y};
}

OnnxResult ConstantOfShape(const OnnxNode& node) {
  WEFT_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, node.Integers(0));
  const onnx::Attribute* const given = node.Find("value");
  if (given == nullptr) return VarList{Fill(node.tape(), {kF32, ShapeOf(sizes)}, 0)};
  WEFT_ASSIGN_OR_RETURN(const OnnxConstant value, ReadOnnxTensor(given->t()));
  if (value.tensor.type.shape.elements() != 1 || !value.wide.empty()) return InvalidArgument("its value is no number");
  return VarList{BroadcastTo(Reshape(node.tape()->Constant(value.tensor), {}), ShapeOf(sizes))};
}

OnnxResult Range(const OnnxNode& node) {
  WEFT_ASSIGN_OR_RETURN(const double start, node.Number(0));
  WEFT_ASSIGN_OR_RETURN(const double limit, node.Number(1));
  WEFT_ASSIGN_OR_RETURN(const double delta, node.Number(2));
  const double count = std::ceil((limit - start) / delta);
  if (!(count < 0x1p31)) return InvalidArgument("it has too many elements");
  const int64_t n = static_cast<int64_t>(std::max(count, 0.0));
  const DType dtype = node.in(0).dtype();
  const Var indices = Cast(Iota(node.tape(), kI32, n), ComputedIn(dtype));
  return VarList{Cast(start + indices * delta, dtype)};
}

OnnxResult Trilu(const OnnxNode& node) {
  WEFT_ASSIGN_OR_RETURN(const double given, node.Number(1, 0));
  const int64_t diagonal = static_cast<int64_t>(std::clamp(given, -0x1p40, 0x1p40));
  return VarList{node.Int("upper", 1) != 0 ? Triu(node.in(0), diagonal) : Tril(node.in(0), diagonal)};
}

// Returns integers as a constant.
OnnxResult Integers(Tape* tape, const std::vector<int64_t>& from, const Shape& shape) {
  std::vector<int32_t> integers;
  for (int64_t each : from) {
    if (each != static_cast<int32_t>(each)) return InvalidArgument("a size, ", each, ", does not fit 32 bits");
    integers.push_back(static_cast<int32_t>(each));
  }
  return VarList{tape->Constant({{kI32, shape}, reinterpret_cast<std::byte*>(integers.data())})};
}
OnnxResult ShapeOfInput(const OnnxNode& node) {
  const Shape shape = node.in(0).shape();
  const int64_t rank = shape.rank(), start = node.Int("start", 0), end = node.Int("end", rank);
  const int64_t begin = std::clamp<int64_t>(start < 0 ? start + rank : start, 0, rank);
  const int64_t stop = std::clamp<int64_t>(end < 0 ? end + rank : end, begin, rank);
  const std::vector<int64_t> sizes(shape.dims().begin() + begin, shape.dims().begin() + stop);
  return Integers(node.tape(), sizes, {stop - begin});
}
OnnxResult SizeOf(const OnnxNode& node) { return Integers(node.tape(), {node.in(0).shape().elements()}, {}); }

// Negative pads remove elements.
OnnxResult PadOf(const OnnxNode& node) {
  WEFT_ASSIGN_OR_RETURN(const std::vector<int64_t> pads, node.Integers(1));
  WEFT_ASSIGN_OR_RETURN(const double value, node.Number(2, 0));
  WEFT_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, node.Integers(3, Sequence<int64_t>(0, std::ssize(pads) / 2)));
  const std::string mode = node.String("mode", "constant");
  if (mode != "constant") return absl::UnimplementedError("padding by " + mode);
  if (pads.size() != 2 * axes.size()) return InvalidArgument("its pads are not two for each axis");
  Var y = node.in(0);
  for (size_t i = 0; i < axes.size(); ++i) {
    WEFT_ASSIGN_OR_RETURN(const int axis, node.Axis(axes[i], y.shape().rank()));
    const int64_t before = std::clamp<int64_t>(pads[i], -y.dim(axis), 1L << 40), end = pads[i + axes.size()];
    const int64_t after = std::clamp<int64_t>(end, -y.dim(axis), 1L << 40);
    y = Slice(y, axis, std::max<int64_t>(-before, 0), y.dim(axis) - std::max<int64_t>(-after, 0));
    y = Pad(y, axis, std::max<int64_t>(before, 0), std::max<int64_t>(after, 0), value);
  }
  return VarList{y};
}

// A negative index counts from the end.
Var Positive(Var ids, int64_t n) { return Where(Less(ids, Number(ids, 0)), ids + static_cast<double>(n), ids); }

// Records Gather and GatherElements.
template <Var (*take)(Var x, Var ids, int axis)>
OnnxResult TakeElements(const OnnxNode& node) {
  const Var x = node.in(0);
  WEFT_ASSIGN_OR_RETURN(const int axis, node.AxisOf(x, 0));
  return VarList{Cast(take(InFloats(x), Positive(node.in(1), x.dim(axis)), axis), x.dtype())};
}

// Views x as a matrix [count, rest]. Each slice of `ids` along its last axis, of size k, is an index into k axes of x,
// from axis `batch` on. RowsOf turns the slice into the number of a row of the matrix.
struct Rows {
  Var ids;  // [...]
  int64_t count = 1, rest = 1;
};
absl::StatusOr<Rows> RowsOf(Var x, Var ids, int64_t batch_axes) {
  const Shape shape = x.shape();
  if (batch_axes < 0 || ids.shape().rank() <= batch_axes || ids.dim(-1) < 1 ||
      ids.dim(-1) > shape.rank() - batch_axes) {
    return InvalidArgument("its indices ", ToString(ids.shape()), " do not fit ", ToString(shape));
  }
  const int k = static_cast<int>(ids.dim(-1)), batch = static_cast<int>(batch_axes);
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

OnnxResult GatherNd(const OnnxNode& node) {
  const Var x = node.in(0), ids = node.in(1);
  const int64_t batch = node.Int("batch_dims", 0);
  WEFT_ASSIGN_OR_RETURN(const Rows rows, RowsOf(x, ids, batch));
  Shape shape(ids.shape().dims().first(ids.shape().rank() - 1));
  for (int i = static_cast<int>(batch + ids.dim(-1)); i < x.shape().rank(); ++i) shape.Append(x.dim(i));
  const Var table = Reshape(InFloats(x), {rows.count, rows.rest});
  return VarList{Cast(Reshape(Gather(table, rows.ids, 0), shape), x.dtype())};
}

// Returns x after adding `updates` to its elements at `ids` along the axis. If the node's reduction is "none",
// `updates` replace the elements instead.
OnnxResult Scatter(const OnnxNode& node, Var x, Var ids, Var updates, int axis) {
  const std::string reduction = node.String("reduction", "none");
  const DType dtype = x.dtype();
  x = InFloats(x);
  updates = InFloats(updates);
  if (reduction == "add") return VarList{Cast(ScatterAdd(x, ids, updates, axis), dtype)};
  if (reduction != "none") return absl::UnimplementedError("scattering by " + reduction);
  const Var zero = FillLike(x, 0), kept = Equal(ScatterAdd(zero, ids, FillLike(updates, 1), axis), zero);
  return VarList{Cast(Where(kept, x, ScatterAdd(zero, ids, updates, axis)), dtype)};
}

OnnxResult ScatterElements(const OnnxNode& node) {
  WEFT_ASSIGN_OR_RETURN(const int axis, node.AxisOf(node.in(0), 0));
  return Scatter(node, node.in(0), Positive(node.in(1), node.in(0).dim(axis)), node.in(2), axis);
}

OnnxResult ScatterNd(const OnnxNode& node) {
  const Var x = node.in(0);
  WEFT_ASSIGN_OR_RETURN(const Rows rows, RowsOf(x, node.in(1), 0));
  const int64_t n = rows.ids.shape().elements();
  const Var ids = BroadcastTo(Reshape(rows.ids, {n, 1}), {n, rows.rest});
  OnnxResult y = Scatter(node, Reshape(x, {rows.count, rows.rest}), ids, Reshape(node.in(2), {n, rows.rest}), 0);
  if (y.ok()) y->front() = Reshape(y->front(), x.shape());
  return y;
}

// Returns one-hot vectors along a new axis: the "on" value at each id, the "off" value elsewhere.
OnnxResult OneHotOf(const OnnxNode& node) {
  WEFT_ASSIGN_OR_RETURN(const double depth, node.Number(1));
  if (!(depth >= 1 && depth < 0x1p31)) return InvalidArgument("its depth is ", depth);
  const int64_t n = static_cast<int64_t>(depth);
  const Var values = node.in(2);
  const Var hot = OneHot(Positive(Cast(node.in(0), kI32), n), n, kBool);
  const Var off = Slice(values, 0, 0, 1), on = Slice(values, 0, 1, 2);
  const Var y = Where(hot, on, off);
  WEFT_ASSIGN_OR_RETURN(const int axis, node.AxisOf(y, -1));
  return VarList{MoveAxis(y, y.shape().rank() - 1, axis)};
}

constexpr OnnxOp kOps[] = {
    {"Concat", ConcatOf, OnnxIntegers::kMoves},
    {"ConstantOfShape", ConstantOfShape},
    {"Expand", Expand, OnnxIntegers::kMoves},
    {"Flatten", Flatten, OnnxIntegers::kMoves},
    {"Gather", TakeElements<Gather>, OnnxIntegers::kMoves},
    {"GatherElements", TakeElements<TakeAlong>, OnnxIntegers::kMoves},
    {"GatherND", GatherNd, OnnxIntegers::kMoves},
    {"OneHot", OneHotOf},
    {"Pad", PadOf, OnnxIntegers::kMoves},
    {"Range", Range},
    {"Reshape", ReshapeOf, OnnxIntegers::kMoves},
    {"Scatter", ScatterElements, OnnxIntegers::kMoves},
    {"ScatterElements", ScatterElements, OnnxIntegers::kMoves},
    {"ScatterND", ScatterNd, OnnxIntegers::kMoves},
    {"Shape", ShapeOfInput, OnnxIntegers::kExact, /*of_shapes=*/true},
    {"Size", SizeOf, OnnxIntegers::kExact, /*of_shapes=*/true},
    {"Slice", SliceOf, OnnxIntegers::kMoves},
    {"Split", SplitOf, OnnxIntegers::kMoves},
    {"Squeeze", SqueezeOf, OnnxIntegers::kMoves},
    {"Tile", Tile, OnnxIntegers::kMoves},
    {"Transpose", TransposeOf, OnnxIntegers::kMoves},
    {"Trilu", Trilu, OnnxIntegers::kMoves},
    {"Unsqueeze", UnsqueezeOf, OnnxIntegers::kMoves},
};

}  // namespace

absl::Span<const OnnxOp> OnnxShapes() { return kOps; }

}  // namespace weft
