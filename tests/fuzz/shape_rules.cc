#include <algorithm>
#include <numeric>

#include "weft/ops/ops.h"
#include "weft/tests/fuzz/drawing.h"

namespace weft {
namespace {

// Returns y with the bound of x. The elements of y are elements of x, some of which may be missing or repeated.
Drawn Moved(const Drawn& x, Var y) { return {.var = y, .bound = x.bound}; }

Drawn Reshaped(Drawing& draw) {
  const Drawn x = draw.Any();
  std::vector<int64_t> sizes = draw.Factors(x.shape().elements());
  if (x.shape().elements() > 0 && draw.Chance(3)) {
    sizes[static_cast<size_t>(draw.Below(static_cast<int64_t>(sizes.size())))] = -1;
  }
  return Moved(x, Reshape(x.var, Shape(sizes)));
}

Drawn Permuted(Drawing& draw) {
  const Drawn x = draw.AnyOfRank(2);
  const int rank = x.shape().rank();
  if (draw.Chance(2)) {
    const int a = draw.Axis(x.shape()), b = draw.Axis(x.shape());
    return Moved(x, Transpose(x.var, a, b));
  }
  std::vector<int> axes(static_cast<size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  for (int i = rank - 1; i > 0; --i) std::swap(axes[i], axes[static_cast<size_t>(draw.Below(i + 1))]);
  return Moved(x, Permute(x.var, axes));
}

Drawn Broadcasted(Drawing& draw) {
  const Shape shape = draw.AnyShape();
  const Drawn x = draw.Like(draw.Broadcastable(shape));
  return Moved(x, BroadcastTo(x.var, shape));
}

Drawn Sliced(Drawing& draw) {
  const Drawn x = draw.AnyOfRank(1);
  const int axis = draw.Axis(x.shape());
  const int64_t size = x.shape().dim(axis), begin = draw.Below(size + 1), end = begin + draw.Below(size - begin + 1);
  if (begin == end && !draw.Chance(8)) return {};  // usually avoids empty slices
  return Moved(x, Slice(x.var, axis, begin, end));
}

Drawn Padded(Drawing& draw) {
  const Drawn x = draw.AnyOfRank(1);
  const int axis = draw.Axis(x.shape());
  const int64_t before = draw.Below(4), after = draw.Below(4);
  return Moved(x, Pad(x.var, axis, before, after, draw.Chance(2) ? 0 : 0.5));
}

Drawn Joined(Drawing& draw) {
  const Drawn x = draw.AnyOfRank(1);
  const bool stack = draw.Chance(3) && x.shape().rank() < 5;
  const int axis = draw.Axis(x.shape());
  VarList parts = {x.var};
  double bound = x.bound;
  for (int64_t more = draw.Below(3); more > 0; --more) {
    Shape shape = x.shape();
    if (!stack) shape.set_dim(axis, draw.Size());
    const Drawn part = draw.Like(shape);
    parts.insert(parts.begin() + draw.Below(static_cast<int64_t>(parts.size()) + 1), part.var);
    bound = std::max(bound, part.bound);
  }
  return {.var = stack ? Stack(parts, axis) : Concat(parts, axis), .bound = bound};
}

Drawn Parted(Drawing& draw) {
  const Drawn x = draw.AnyOfRank(1);
  const int axis = draw.Axis(x.shape());
  const int64_t size = x.shape().dim(axis);
  for (const int parts : {3, 2}) {
    if (size % parts != 0) continue;
    const VarList all = Split(x.var, axis, parts);
    if (draw.Chance(2)) return {all[0] * all[static_cast<size_t>(parts) - 1], x.bound * x.bound};
    return Moved(x, all[static_cast<size_t>(draw.Below(parts))]);
  }
  return {};
}

Drawn Squeezed(Drawing& draw) {
  const Drawn x = draw.Any();
  std::vector<int> ones;
  for (int axis = 0; axis < x.shape().rank(); ++axis) {
    if (x.shape().dim(axis) == 1) ones.push_back(axis);
  }
  if (!ones.empty()) return Moved(x, Squeeze(x.var, ones));
  if (x.shape().rank() > 4) return {};
  return Moved(x, Unsqueeze(x.var, static_cast<int>(draw.Below(x.shape().rank() + 1))));
}

Drawn Flipped(Drawing& draw) {
  const Drawn x = draw.AnyOfRank(1);
  return Moved(x, Flip(x.var, draw.Axis(x.shape())));
}

Drawn Triangle(Drawing& draw) {
  const Drawn x = draw.AnyOfRank(2);
  const int64_t diagonal = draw.Below(7) - 3;
  switch (draw.Below(3)) {
    case 0:
      return Moved(x, Triu(x.var, diagonal));
    case 1:
      return Moved(x, Tril(x.var, diagonal));
    default: {
      const int64_t left = draw.Below(5) - 1, right = draw.Below(4) - 1;
      return Moved(x, BandMask(x.var, left, right, -0.5));
    }
  }
}

constexpr Rule kRules[] = {Reshaped, Permuted, Permuted, Broadcasted, Sliced,  Padded,
                           Joined,   Parted,   Squeezed, Flipped,     Triangle};

}  // namespace

absl::Span<const Rule> ShapeRules() { return kRules; }

}  // namespace weft
