// Reshape gives the same elements, in the same order, another shape. It is a view: nothing runs. Squeeze and Unsqueeze
// are composed of Reshape, and Stack of Unsqueeze and Concat.
#include "absl/strings/str_cat.h"
#include "weft/base/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/attributes.h"
#include "weft/ops/kernels/rows/axis.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

absl::StatusOr<Types> Infer(const Attrs& attrs, TypeSpan in) {
  const Shape shape = attrs.as<ShapeAttrs>().shape;
  if (!shape.valid() || shape.elements() != in[0].shape.elements()) {
    return ShapeError("reshape",
                      absl::StrCat("the ", in[0].shape.elements(), " elements of ", ToString(in[0].shape),
                                   " can't be seen as ", ToString(shape)),
                      in);
  }
  return Types{{in[0].dtype, shape}};
}

// dx = dy under x's shape.
VarList Gradient(const GradientArgs& a) { return {Reshape(a.grad(0), a.input(0).shape())}; }

// Returns `shape`. If exactly one of its sizes is -1, that size is inferred from `elements`. If no size fits, the -1
// stays, and Infer reports the error.
Shape Resolve(const Shape& shape, int64_t elements) {
  Shape resolved = shape;
  int unknown = -1;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape.dim(axis) != -1) continue;
    if (unknown >= 0) return shape;
    unknown = axis;
    resolved.set_dim(axis, 1);
  }
  if (unknown < 0 || !resolved.valid()) return shape;
  const int64_t others = resolved.elements();
  if (others == 0 || elements % others != 0) return shape;
  resolved.set_dim(unknown, elements / others);
  return resolved;
}

constexpr OpExample kExamples[] = {
    {.in = "[3,4]", .record = RecordList<Reshape, 2, 6>, .out = "[2,6]"},
    {.in = "[3,4]", .record = RecordList<Reshape, 2, -1, 1>, .out = "[2,6,1]"},
    {.in = "[1,1]", .record = RecordList<Reshape>, .out = "[]"},
    {.in = "[0,4]", .record = RecordList<Reshape, 7, 0>, .out = "[7,0]"},
    {.in = "i32[6]", .record = RecordList<Reshape, 3, 2>, .below = 9, .out = "i32[3,2]"},
    {.in = "[3,4]", .record = RecordList<Reshape, 5, 2>, .error = "12 elements of [3,4] can't be seen as [5,2]"},
    {.in = "[3,4]", .record = RecordList<Reshape, -1, -1>, .error = "[-1,-1]"},
    {.in = "[3,4]", .record = RecordList<Reshape, -1, 5>, .error = "[-1,5]"},
};

}  // namespace

constexpr OpDef kReshape = {.name = "reshape",
                            .infer = Infer,
                            .view = true,
                            .gradient = Gradient,
                            .autocast = Autocast::kFollow,
                            .attrs = AttrOpsOf<ShapeAttrs>(),
                            .examples = kExamples};
Var Reshape(Var x, const Shape& shape) {
  const Shape resolved = Resolve(shape, x.shape().elements());
  return resolved == x.shape() ? x : Record(kReshape, {x}, Attrs::Of(ShapeAttrs{resolved}));
}

Var Squeeze(Var x, AxisSpan axes) {
  return Composite("squeeze", {x}, [&]() -> absl::StatusOr<Var> {
    const TensorType type = x.type();
    WEFT_ASSIGN_OR_RETURN(const AxisSet dropped, MarkAxes("squeeze", axes, type));
    for (int axis : axes) {
      const int64_t size = type.shape.dim(axis);
      if (size != 1) return ShapeError("squeeze", absl::StrCat("axis ", axis, " has size ", size), {type});
    }
    return Reshape(x, WithoutAxes(type.shape, dropped));
  });
}

Var Unsqueeze(Var x, int axis) {
  return Composite("unsqueeze", {x}, [&]() -> absl::StatusOr<Var> {
    const TensorType type = x.type();
    const int rank = type.shape.rank(), front = axis < 0 ? axis + rank + 1 : axis;
    if (front < 0 || front > rank) {
      return ShapeError("unsqueeze", absl::StrCat("axis ", axis, " is outside rank ", rank + 1), {type});
    }
    Shape shape(type.shape.dims().first(front));
    shape.Append(1);
    for (int64_t dim : type.shape.dims().subspan(front)) shape.Append(dim);
    return Reshape(x, shape);
  });
}

Var Stack(VarSpan parts, int axis) {
  return Composite("stack", parts, [&] {
    VarList unsqueezed;
    for (Var part : parts) unsqueezed.push_back(Unsqueeze(part, axis));
    return Concat(unsqueezed, axis);
  });
}

}  // namespace weft
