// Rotary is composed of other ops. It turns each pair of features by an angle with given cosine and sine.
#include "absl/strings/str_cat.h"
#include "weft/base/status.h"
#include "weft/ops/ops.h"

namespace weft {

Var Rotary(Var x, Var cosine, Var sine, RotaryLayout layout) {
  return Composite("rotary", {x, cosine, sine}, [&]() -> absl::StatusOr<Var> {
    const Shape shape = x.shape();
    if (shape.rank() == 0 || shape.dim(-1) % 2 != 0) {
      return ShapeError("rotary", "the last axis must be even", {x.type()});
    }
    const int64_t half = shape.dim(-1) / 2;
    const Shape turned = WithDim(shape, -1, half);
    if (Broadcast(cosine.shape(), turned) != turned || Broadcast(sine.shape(), turned) != turned) {
      return ShapeError("rotary", absl::StrCat("cosine and sine must broadcast to ", ToString(turned)),
                        {x.type(), cosine.type(), sine.type()});
    }
    const bool pairs = layout == RotaryLayout::kPairs;
    Shape split(shape.dims().first(shape.rank() - 1));
    for (int64_t dim : {half, int64_t{2}}) split.Append(dim);
    const VarList parts = pairs ? Split(Reshape(x, split), -1, 2) : Split(x, -1, 2);
    const Var a = Reshape(parts[0], turned), b = Reshape(parts[1], turned);
    const Var y_a = a * cosine - b * sine, y_b = b * cosine + a * sine;
    if (!pairs) return Concat({y_a, y_b}, -1);
    split.set_dim(-1, 1);
    return Reshape(Concat({Reshape(y_a, split), Reshape(y_b, split)}, -1), shape);
  });
}

}  // namespace weft
