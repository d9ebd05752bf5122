#include <algorithm>
#include <cmath>

#include "weft/ops/ops.h"
#include "weft/tests/fuzz/drawing.h"

namespace weft {
namespace {

Drawn Product(Drawing& draw) {
  const Drawn a = draw.Under(draw.AnyOfRank(2), 10);
  const MatMulOptions options = {.transpose_a = draw.Chance(3), .transpose_b = draw.Chance(2)};
  const int64_t inner = a.shape().dim(options.transpose_a ? -2 : -1), columns = draw.Size();
  Shape b_shape(a.shape().dims());
  b_shape.set_dim(-2, options.transpose_b ? columns : inner);
  b_shape.set_dim(-1, options.transpose_b ? inner : columns);
  if (draw.Chance(2)) b_shape = Shape(b_shape.dims().last(2));
  const Drawn b = draw.Under(draw.Like(b_shape), 10);
  const double bound = a.bound * b.bound * static_cast<double>(inner);
  if (draw.Chance(3)) {
    Shape c_shape(a.shape().dims());
    c_shape.set_dim(-2, a.shape().dim(options.transpose_a ? -1 : -2));
    c_shape.set_dim(-1, columns);
    const Drawn c = draw.Like(c_shape);
    return {MatMulAdd(a.var, b.var, c.var, options), bound + c.bound};
  }
  return {MatMul(a.var, b.var, options), bound};
}

// Records softmax(q kᵀ / sqrt(D)) v, spelt out or as one op. In the one op, several heads may share a key and a value.
Drawn Attention(Drawing& draw) {
  const bool by_hand = draw.Chance(2), causal = draw.Chance(2), capped = draw.Chance(4);
  const int64_t key_heads = 1 + draw.Below(3), heads = key_heads * (by_hand || draw.Chance(2) ? 1 : 2);
  const int64_t width = 1 + draw.Below(9), batch = 1 + draw.Below(3);
  const int64_t targets = draw.Size(), sources = draw.Chance(2) ? targets : draw.Size();
  const Drawn source = draw.Under(draw.Like({batch, sources, key_heads * width}), 3);
  const Drawn query = draw.Under(draw.Like({batch, targets, heads * width}), 3);
  const Drawn value = draw.Chance(2) ? source : draw.Under(draw.Like({batch, sources, key_heads * width}), 3);
  VarList masks;
  if (draw.Chance(2)) masks.push_back(draw.Mask({batch, 1, 1, sources}));
  if (draw.Chance(3)) masks.push_back(draw.Like(draw.Broadcastable({batch, heads, targets, sources})).var);
  const double scale = 1 / std::sqrt(static_cast<double>(width));
  if (!by_hand) {
    const ScaledDotProductOptions options = {.heads = heads,
                                             .key_value_heads = key_heads,
                                             .soft_cap = capped ? 5.0 : 0.0,
                                             .dropout = draw.Chance(4) ? 0.2 : 0.0,
                                             .causal = causal,
                                             .window = draw.Chance(4) ? draw.Below(sources + 1) : 0};
    return {ScaledDotProductAttention(query.var, source.var, value.var, options, masks), 3};
  }
  const auto by_head = [&](Var x, int64_t length) {
    return Permute(Reshape(x, {batch, length, heads, width}), {0, 2, 1, 3});  // [B, H, T, D]
  };
  const Var q = by_head(query.var, targets), k = by_head(source.var, sources), v = by_head(value.var, sources);
  Var scores = MatMul(draw.Chance(2) ? q * scale : q, k, {.transpose_b = true});  // [B, H, T, S]
  if (capped) scores = 5 * Tanh(scores / 5);
  for (const Var mask : masks) scores = mask.dtype() == kBool ? MaskFill(scores, mask, -1e30) : scores + mask;
  if (causal) scores = CausalMask(scores, -1e30);
  const Var mixed = Permute(MatMul(Softmax(scores), v), {0, 2, 1, 3});
  return {Reshape(mixed, {batch, targets, heads * width}), 3};
}

Drawn Normalised(Drawing& draw) {
  const Drawn x = draw.Under(draw.AnyOfRank(1), 30);
  const int64_t width = x.shape().cols();
  if (width == 0) return {};
  const Var gain = draw.Leaf({width}).var, bias = draw.Leaf({width}).var;
  const double bound = 3 * std::sqrt(static_cast<double>(width)) + 3;
  const double epsilon = draw.Chance(2) ? 1e-5 : 1e-3;
  switch (draw.Below(6)) {
    case 0:
      return {LayerNorm(x.var, gain, bias, epsilon), bound};
    case 1:
      return {RmsNorm(x.var, gain, epsilon), bound};
    case 2: {
      const Var centred = x.var - Mean(x.var, -1, /*keep=*/true);
      const Var normal = centred / Sqrt(Mean(Square(centred), -1, /*keep=*/true) + epsilon);
      return {draw.Chance(2) ? normal * gain + bias : normal, bound};
    }
    case 3:
      return {x.var * Rsqrt(Mean(Square(x.var), -1, /*keep=*/true) + epsilon) * gain, bound};
    case 4: {
      if (x.shape().rank() < 2 || x.shape().elements() == 0) return {};  // the mean needs at least one row
      const Var running_mean = draw.Leaf({width}).var, running_variance = Square(draw.Leaf({width}).var);
      const auto [y, mean, variance] = BatchNorm(x.var, gain, bias, running_mean, running_variance, epsilon);
      return {y + mean - variance, bound + 1000};
    }
    default: {
      const Drawn inside = draw.Under(x, 10);
      return {draw.Chance(2) ? Softmax(inside.var) : LogSoftmax(inside.var), 25};
    }
  }
}

Drawn LookedUp(Drawing& draw) {
  const Drawn x = draw.AnyOfRank(2);
  const int axis = draw.Axis(x.shape());
  const int64_t size = x.shape().dim(axis);
  if (size == 0) return {};  // ids need at least one row to refer to
  switch (draw.Below(5)) {
    case 0: {
      const int64_t n = draw.Size();
      return {.var = Gather(x.var, draw.Ids(draw.Chance(2) ? Shape{n} : Shape{2, n}, size), axis), .bound = x.bound};
    }
    case 1: {
      Shape shape = x.shape();
      shape.set_dim(axis, draw.Size());
      return {.var = TakeAlong(x.var, draw.Ids(shape, size), axis), .bound = x.bound};
    }
    case 2: {
      Shape shape = x.shape();
      shape.set_dim(axis, 1 + draw.Below(4));
      const Var ids = draw.Ids(shape, size);
      const Drawn updates = draw.Like(shape);
      return {.var = ScatterAdd(x.var, ids, updates.var, axis), .bound = x.bound + 4 * updates.bound};
    }
    case 3: {
      const Var ids = draw.Ids({2, 1 + draw.Below(6)}, size);
      return {.var = OneHot(ids, size, draw.dtype()), .bound = 1};
    }
    default: {
      const int64_t rows = 1 + draw.Below(9);
      const Drawn table = draw.Like({rows, 1 + draw.Below(17)});
      return {.var = Embedding(table.var, draw.Ids({3, 1 + draw.Below(9)}, rows)), .bound = table.bound};
    }
  }
}

// Records a loss whose last layer has the embedding's table as its weight.
Drawn TiedHead(Drawing& draw) {
  const int64_t classes = 2 + draw.Below(40), width = 1 + draw.Below(20), rows = 1 + draw.Below(20);
  const Var table = draw.Leaf({classes, width}).var;
  const Var x = Tanh(Embedding(table, draw.Ids({rows}, classes)));
  const Var targets = draw.Ids({rows}, classes);
  return {.var = CrossEntropy(MatMul(x, table, {.transpose_b = true}), targets), .bound = 30};
}

Drawn Rotated(Drawing& draw) {
  const int64_t pairs = 1 + draw.Below(8), length = draw.Size();
  const Drawn x = draw.Like({2, length, 2 * pairs});
  const Drawn cosine = draw.Leaf({length, pairs}), sine = draw.Leaf({length, pairs});
  const RotaryLayout layout = draw.Chance(2) ? RotaryLayout::kHalves : RotaryLayout::kPairs;
  return {.var = Rotary(x.var, cosine.var, sine.var, layout), .bound = x.bound * 6};
}

// Records a product with enough rows, and a large enough weight, that the weight is packed in f32.
Drawn LargeProduct(Drawing& draw) {
  if (!draw.Chance(4)) return {};
  const int64_t rows = 512 + draw.Below(100), inner = 64 + draw.Below(8), columns = 64 + draw.Below(70);
  const Drawn x = draw.Under(draw.Like({rows, inner}), 3);
  const Drawn weight = draw.Weight({columns, inner}, 1);
  return {MatMul(x.var, weight.var, {.transpose_b = true}), x.bound * static_cast<double>(inner)};
}

// Writes rows into a cache twice. The second time, the rows may come from the cache itself.
Drawn Appended(Drawing& draw) {
  const int64_t batch = 1 + draw.Below(2), heads = 1 + draw.Below(2), length = 2 + draw.Below(6);
  const Shape shape = {batch, heads, length, 1 + draw.Below(9)};
  const Var cache = draw.State(shape), positions = draw.Ids({batch, length}, length);
  const Var rows = draw.Like(shape).var;
  const Var first = CacheAppend(cache, rows, positions);
  draw.undifferentiated().push_back(CacheAppend(first, draw.Chance(2) ? first : rows, positions));
  return {};
}

constexpr Rule kRules[] = {Product,    Product,  Product,  Attention, LargeProduct, Normalised,
                           Normalised, LookedUp, TiedHead, Rotated,   Appended};

}  // namespace

absl::Span<const Rule> NetworkRules() { return kRules; }

}  // namespace weft
