#include "weft/core/tensor.h"

#include <algorithm>

namespace weft {

bool Shape::valid() const {
  __int128 n = 1;
  for (int64_t d : dims()) {
    if (d < 0) return false;
    n *= std::max<int64_t>(d, 1);
    if (n > (int64_t{1} << 48)) return false;
  }
  return true;
}

std::string ToString(const Shape& shape) {
  if (shape.max_rank_exceeded()) return "[more than 6 axes]";
  return absl::StrCat("[", absl::StrJoin(shape.dims(), ","), "]");
}

std::string IndexText(const Shape& shape, int64_t i) {
  Shape index = shape;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    index.set_dim(axis, i % shape.dim(axis));
    i /= shape.dim(axis);
  }
  return ToString(index);
}

std::optional<Shape> Broadcast(const Shape& a, const Shape& b) {
  Shape out = a.rank() >= b.rank() ? a : b;
  for (int axis = -1; axis >= -out.rank(); --axis) {
    const int64_t m = a.dim(axis), n = b.dim(axis);
    if (m != n && m != 1 && n != 1) return std::nullopt;
    out.set_dim(axis, m == 1 ? n : m);
  }
  return out;
}

std::optional<int> NormalAxis(const Shape& shape, int axis) {
  if (axis < -shape.rank() || axis >= shape.rank()) return std::nullopt;
  return axis < 0 ? axis + shape.rank() : axis;
}

}  // namespace weft
