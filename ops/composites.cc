// ops/composites.cc: elementwise functions, look-ups and rotations that are spelt in other ops.
#include <limits>

#include "absl/strings/str_cat.h"
#include "weft/core/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/index/embedding.h"
#include "weft/ops/kernels/axis.h"
#include "weft/ops/ops.h"

namespace weft {

namespace {

void WantBools(const char* op, VarSpan inputs) {
  for (Var x : inputs) {
    if (x.dtype() != kBool) x.tape->Fail(ShapeError(op, "not defined for " + std::string(Name(x.dtype())), {x.type()}));
  }
}

}  // namespace

Var Not(Var x) {
  const FunctionScope calling("not", {x});
  WantBools("not", {x});
  return Equal(x, FillLike(x, false));
}

Var Xor(Var a, Var b) {
  const FunctionScope calling("xor", {a, b});
  if (calling.ok()) WantBools("xor", {a, b});
  return NotEqual(a, b);
}

Var NotEqual(Var a, Var b) {
  const FunctionScope calling("not_equal", {a, b});
  return Not(Equal(a, b));
}

Var Greater(Var a, Var b) {
  const FunctionScope calling("greater", {a, b});
  return calling.ok() ? Less(b, a) : a;
}

Var GreaterEqual(Var a, Var b) {
  const FunctionScope calling("greater_equal", {a, b});
  return calling.ok() ? LessEqual(b, a) : a;
}

Var IsNan(Var x) {
  const FunctionScope calling("is_nan", {x});
  return NotEqual(x, x);
}

Var Neg(Var x) {
  const FunctionScope calling("neg", {x});
  return x.dtype() == kI32 ? FillLike(x, 0) - x : Scale(x, -1);
}

Var Sign(Var x) {
  const FunctionScope calling("sign", {x});
  const Var zero = Number(x, 0);
  return Cast(Greater(x, zero), x.dtype()) - Cast(Less(x, zero), x.dtype());
}

Var Square(Var x) {
  const FunctionScope calling("square", {x});
  return x * x;
}

Var Rsqrt(Var x) {
  const FunctionScope calling("rsqrt", {x});
  return 1 / Sqrt(x);
}

Var Clamp(Var x, double low, double high) {
  const FunctionScope calling("clamp", {x});
  return Minimum(Maximum(x, Number(x, low)), Number(x, high));
}

Var Pow(Var x, double exponent) {
  const FunctionScope calling("pow", {x});
  if (exponent == 2) return x * x;
  if (exponent == 3) return x * x * x;
  if (exponent == 0.5) return Sqrt(x);
  if (exponent == -1 && x.dtype() != kI32) return 1 / x;
  return Pow(x, Number(x, exponent));
}

Var Silu(Var x) {
  const FunctionScope calling("silu", {x});
  return x * Sigmoid(x);
}

Var Gather(Var x, Var ids, int axis) {
  const FunctionScope calling("gather", {x, ids});
  const Shape shape = x.shape(), ids_shape = ids.shape();
  const int front = FrontAxis(shape, axis);
  x.tape->Fail(CheckAxis("gather", front, {x.type(), ids.type()}));
  if (ids.dtype() != kI32) x.tape->Fail(ShapeError("gather", "ids must be i32", {x.type(), ids.type()}));
  if (shape.dim(front) == 0 && ids_shape.elements() > 0) {
    x.tape->Fail(
        ShapeError("gather", absl::StrCat("axis ", front, " has nothing that ids could name"), {x.type(), ids.type()}));
  }
  if (!x.tape->status().ok()) return x;
  // [outer, n, inner] → [n, outer, inner] → rows by id → [outer, ids, inner].
  const int64_t n = shape.dim(front), outer = shape.Product(0, front), inner = shape.Product(front + 1, shape.rank());
  const Var table = Reshape(Transpose(Reshape(x, {outer, n, inner}), 0, 1), {n, outer * inner});
  const Var rows = Reshape(Embedding(table, ids), {ids_shape.elements(), outer, inner});
  Shape result(shape.dims().first(front));
  for (int64_t dim : ids_shape.dims()) result.Append(dim);
  for (int64_t dim : shape.dims().subspan(front + 1)) result.Append(dim);
  return Reshape(Transpose(rows, 0, 1), result);
}

namespace {

// For each of `ids`, which name positions along `axis` of x: the place of x's element in the order of all of them; -1
// for an id outside the axis.
Var PlacesAlong(Var x, Var ids, int axis) {
  const Shape shape = x.shape(), at = ids.shape();
  const int64_t n = shape.dim(axis);
  Var place = ids * static_cast<double>(shape.Product(axis + 1, shape.rank()));
  for (int i = 0; i < shape.rank(); ++i) {
    if (i == axis) continue;
    Shape along;
    for (int j = 0; j < shape.rank(); ++j) along.Append(j == i ? at.dim(i) : 1);
    const double stride = static_cast<double>(shape.Product(i + 1, shape.rank()));
    place = place + Reshape(Iota(x.tape, kI32, at.dim(i)) * stride, along);
  }
  return MaskFill(place, Or(Less(ids, Number(ids, 0)), GreaterEqual(ids, Number(ids, static_cast<double>(n)))), -1);
}

absl::Status CheckAlong(const char* op, Var x, Var ids, int axis) {
  WEFT_RETURN_IF_ERROR(CheckAxis(op, axis, {x.type(), ids.type()}));
  const auto error = [&](const auto&... parts) {
    return ShapeError(op, absl::StrCat(parts...), {x.type(), ids.type()});
  };
  if (ids.dtype() != kI32) return error("ids must be i32");
  if (x.dim(axis) == 0 && ids.shape().elements() > 0) return error("axis ", axis, " has nothing that ids could name");
  if (ids.shape().rank() != x.shape().rank()) return error("x and ids differ in rank");
  for (int i = 0; i < x.shape().rank(); ++i) {
    if (i != axis && ids.dim(i) > x.dim(i)) return error("ids have ", ids.dim(i), " along axis ", i, " of ", x.dim(i));
  }
  if (x.shape().elements() > std::numeric_limits<int32_t>::max()) return error("x has more than 2^31 - 1 elements");
  return absl::OkStatus();
}

}  // namespace

Var TakeAlong(Var x, Var ids, int axis) {
  const FunctionScope calling("take_along", {x, ids});
  axis = FrontAxis(x.shape(), axis);
  x.tape->Fail(CheckAlong("take_along", x, ids, axis));
  if (!x.tape->status().ok()) return x;
  return Reshape(Embedding(Reshape(x, {x.shape().elements(), 1}), PlacesAlong(x, ids, axis)), ids.shape());
}

Var ScatterAdd(Var x, Var ids, Var updates, int axis) {
  const FunctionScope calling("scatter_add", {x, ids, updates});
  axis = FrontAxis(x.shape(), axis);
  x.tape->Fail(CheckAlong("scatter_add", x, ids, axis));
  const Types types = {x.type(), ids.type(), updates.type()};
  if (updates.shape() != ids.shape()) x.tape->Fail(ShapeError("scatter_add", "ids and updates differ in shape", types));
  if (updates.dtype() != x.dtype() || (x.dtype() != kF32 && x.dtype() != kF64)) {
    x.tape->Fail(ShapeError("scatter_add", "x and updates must be both f32 or both f64", types));
  }
  if (!x.tape->status().ok()) return x;
  const int64_t n = ids.shape().elements();
  const Var rows = Reshape(updates, {n, 1}), places = Reshape(PlacesAlong(x, ids, axis), {n});
  const Attrs attrs = Attrs::Of(EmbeddingGradientAttrs{.rows = x.shape().elements()});
  return x + Reshape(Record(kEmbeddingGradient, {rows, places}, attrs), x.shape());
}

Var OneHot(Var ids, int64_t n, DType dtype) {
  const FunctionScope calling("one_hot", {ids});
  Shape shape = ids.shape();
  shape.Append(1);
  return Cast(Equal(Reshape(ids, shape), Iota(ids.tape, kI32, n)), dtype);
}

Var Rotary(Var x, Var cosine, Var sine, RotaryLayout layout) {
  const FunctionScope calling("rotary", {x, cosine, sine});
  const Shape shape = x.shape();
  const int64_t half = shape.dim(-1) / 2;
  Shape turned = shape;
  if (shape.rank() > 0) turned.set_dim(-1, half);
  if (shape.rank() == 0 || shape.dim(-1) % 2 != 0) {
    x.tape->Fail(ShapeError("rotary", "the last axis must be even", {x.type()}));
  } else if (Broadcast(cosine.shape(), turned) != turned || Broadcast(sine.shape(), turned) != turned) {
    x.tape->Fail(ShapeError("rotary", absl::StrCat("cosine and sine must broadcast to ", ToString(turned)),
                            {x.type(), cosine.type(), sine.type()}));
  }
  if (!calling.ok()) return x;
  const bool pairs = layout == RotaryLayout::kPairs;
  Shape split(shape.dims().first(shape.rank() - 1)), part = split;
  for (int64_t dim : {half, int64_t{2}}) split.Append(dim);
  part.Append(half);
  const VarList parts = pairs ? Split(Reshape(x, split), -1, 2) : Split(x, -1, 2);
  const Var a = Reshape(parts[0], part), b = Reshape(parts[1], part);
  const Var y_a = a * cosine - b * sine, y_b = b * cosine + a * sine;
  if (!pairs) return Concat({y_a, y_b}, -1);
  split.set_dim(-1, 1);
  return Reshape(Concat({Reshape(y_a, split), Reshape(y_b, split)}, -1), shape);
}

}  // namespace weft
