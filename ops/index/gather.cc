// RequireBounds checks the ids of all look-ups. Gather and TakeAlong look up rows by Embedding. ScatterAdd adds rows by
// EmbeddingGradient. OneHot compares ids.
#include <limits>

#include "absl/strings/str_cat.h"
#include "weft/base/status.h"
#include "weft/ops/attributes.h"
#include "weft/ops/kernels/rows/axis.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

// Checks that x has `axis`, that ids are i32, and that `axis` is not empty if there are ids.
absl::Status CheckIds(const char* op, Var x, Var ids, int axis) {
  const Types types = {x.type(), ids.type()};
  WEFT_RETURN_IF_ERROR(CheckAxis(op, axis, types));
  if (ids.dtype() != kI32) return ShapeError(op, "ids must be i32", types);
  if (x.dim(axis) > 0 || ids.shape().elements() == 0) return absl::OkStatus();
  return ShapeError(op, absl::StrCat("axis ", axis, " has size 0, so that no id is valid"), types);
}

// Each element of `ids` names an element of x along `axis`; the other coordinates of both are equal. Returns the index
// of the named element in the flattened x, or -1 if the id is outside the axis.
Var FlatIndices(Var x, Var ids, int axis) {
  const Shape shape = x.shape(), at = ids.shape();
  const int64_t n = shape.dim(axis);
  Var index = ids * static_cast<double>(shape.Product(axis + 1, shape.rank()));
  for (int i = 0; i < shape.rank(); ++i) {
    if (i == axis) continue;
    Shape along;
    for (int j = 0; j < shape.rank(); ++j) along.Append(j == i ? at.dim(i) : 1);
    const double stride = static_cast<double>(shape.Product(i + 1, shape.rank()));
    index = index + Reshape(Iota(x.tape, kI32, at.dim(i)) * stride, along);
  }
  return MaskFill(index, Or(Less(ids, Number(ids, 0)), GreaterEqual(ids, Number(ids, static_cast<double>(n)))), -1);
}

absl::Status CheckAlong(const char* op, Var x, Var ids, int axis) {
  WEFT_RETURN_IF_ERROR(CheckIds(op, x, ids, axis));
  const auto error = [&](const auto&... parts) {
    return ShapeError(op, absl::StrCat(parts...), {x.type(), ids.type()});
  };
  if (ids.shape().rank() != x.shape().rank()) return error("x and ids differ in rank");
  for (int i = 0; i < x.shape().rank(); ++i) {
    if (i != axis && ids.dim(i) > x.dim(i)) return error("ids have ", ids.dim(i), " along axis ", i, " of ", x.dim(i));
  }
  if (x.shape().elements() > std::numeric_limits<int32_t>::max()) return error("x has more than 2^31 - 1 elements");
  return absl::OkStatus();
}

}  // namespace

void RequireBounds(const char* op, Var indices, int64_t count, absl::string_view counted,
                   std::optional<int64_t> ignored) {
  Tape* const tape = indices.tape;
  if (tape == nullptr || !tape->status().ok() || indices.shape().elements() == 0) return;
  const Program& program = tape->program();
  const Node& source = program.producer(indices.id);
  if (source.op != &kInputOp) return;
  const InputSpec& spec = program.inputs[source.attrs.as<SourceAttrs>().index];
  const auto [below, declared] = spec.bounds;
  std::string wrong;
  if (below <= 0) {
    wrong = absl::StrCat("has no range, wanted below <= ", count);
  } else if (below > count) {
    wrong = absl::StrCat("is declared with below = ", below, ", wanted below <= ", count);
  } else if (declared == InputBounds().ignored || declared == ignored) {
    return;
  } else {
    wrong = absl::StrCat("is declared with ignored = ", declared, ", wanted ",
                         ignored ? absl::StrCat(*ignored, " as in the op") : "none");
  }
  tape->Fail(ShapeError(op, absl::StrCat("input '", spec.name, "' ", wrong, "; there are ", count, " ", counted),
                        {spec.type}));
}

Var Gather(Var x, Var ids, int axis) {
  return Composite("gather", {x, ids}, [&]() -> absl::StatusOr<Var> {
    const Shape shape = x.shape(), ids_shape = ids.shape();
    const int front = FrontAxis(shape, axis);
    WEFT_RETURN_IF_ERROR(CheckIds("gather", x, ids, front));
    // [outer, n, inner] → [n, outer, inner] → rows by id → [outer, ids, inner].
    const int64_t n = shape.dim(front), outer = shape.Product(0, front), inner = shape.Product(front + 1, shape.rank());
    const Var table = Reshape(Transpose(Reshape(x, {outer, n, inner}), 0, 1), {n, outer * inner});
    const Var rows = Reshape(Embedding(table, ids), {ids_shape.elements(), outer, inner});
    Shape result(shape.dims().first(front));
    for (int64_t dim : ids_shape.dims()) result.Append(dim);
    for (int64_t dim : shape.dims().subspan(front + 1)) result.Append(dim);
    return Reshape(Transpose(rows, 0, 1), result);
  });
}

Var TakeAlong(Var x, Var ids, int axis) {
  return Composite("take_along", {x, ids}, [&]() -> absl::StatusOr<Var> {
    const int front = FrontAxis(x.shape(), axis);
    WEFT_RETURN_IF_ERROR(CheckAlong("take_along", x, ids, front));
    return Reshape(Embedding(Reshape(x, {x.shape().elements(), 1}), FlatIndices(x, ids, front)), ids.shape());
  });
}

Var ScatterAdd(Var x, Var ids, Var updates, int axis) {
  return Composite("scatter_add", {x, ids, updates}, [&]() -> absl::StatusOr<Var> {
    const int front = FrontAxis(x.shape(), axis);
    const Types types = {x.type(), ids.type(), updates.type()};
    WEFT_RETURN_IF_ERROR(CheckAlong("scatter_add", x, ids, front));
    if (updates.shape() != ids.shape()) return ShapeError("scatter_add", "ids and updates differ in shape", types);
    if (updates.dtype() != x.dtype() || (x.dtype() != kF32 && x.dtype() != kF64)) {
      return ShapeError("scatter_add", "x and updates must be both f32 or both f64", types);
    }
    const int64_t n = ids.shape().elements();
    const Var rows = Reshape(updates, {n, 1}), indices = Reshape(FlatIndices(x, ids, front), {n});
    return x + Reshape(EmbeddingGradient(rows, indices, x.shape().elements()), x.shape());
  });
}

Var OneHot(Var ids, int64_t n, DType dtype) {
  return Composite("one_hot", {ids}, [&] {
    Shape shape = ids.shape();
    shape.Append(1);
    return Cast(Equal(Reshape(ids, shape), Iota(ids.tape, kI32, n)), dtype);
  });
}

}  // namespace weft
