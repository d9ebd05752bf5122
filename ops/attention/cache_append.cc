// Writes rows [B, H, T, D] into a cache [B, H, S, D] at positions i32 [B, T]:
//   cache[b, h, positions[b, t], d] = rows[b, h, t, d].
//
// The output is the next version of the cache. A row whose position is outside 0 .. S-1 is not written.
#include <algorithm>

#include "weft/core/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/index/index_bounds.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

absl::StatusOr<Types> Infer(const Attrs&, TypeSpan in) {
  const Shape &cache = in[0].shape, &rows = in[1].shape, &positions = in[2].shape;
  if (cache.rank() != 4 || rows.rank() != 4 || in[0].dtype != in[1].dtype || cache.dim(0) != rows.dim(0) ||
      cache.dim(1) != rows.dim(1) || cache.dim(3) != rows.dim(3)) {
    return ShapeError("cache_append", "wanted a cache [B,H,S,D] and rows [B,H,T,D] of one dtype", in);
  }
  if (in[2].dtype != kI32 || positions != Shape({rows.dim(0), rows.dim(2)})) {
    return ShapeError("cache_append", "the positions must be i32[B,T]", in);
  }
  return Types{in[0]};
}

// Calls copy(offset in rows, offset in cache), both in elements, for each row that is written. position(i) returns
// element i of the positions.
template <class At, class Copy>
void ForEachRow(const Shape& cache, const Shape& rows, At position, Copy copy) {
  const int64_t heads = rows.dim(1), length = rows.dim(2), width = rows.dim(3), capacity = cache.dim(2);
  for (int64_t row = 0; row < rows.rows(); ++row) {
    const int64_t matrix = row / length, to = position(matrix / heads * length + row % length);
    if (to >= 0 && to < capacity) copy(row * width, (matrix * capacity + to) * width);
  }
}

template <class T>
void Kernel(const KernelArgs& a, Rect tile) {
  if (tile.rows() == 0) return;
  const int64_t width = a.input_shape(1).dim(3);
  ForEachRow(
      a.input_shape(0), a.input_shape(1), [&](int64_t i) { return a.input<int32_t>(2)[i]; },
      [&](int64_t from, int64_t to) { std::copy_n(a.input<T>(1) + from, width, a.output<T>(0) + to); });
}

void Reference(const ReferenceArgs& a) {
  const int64_t width = a.input_types[1].shape.dim(3);
  a.outputs[0] = a.inputs[0];
  ForEachRow(
      a.input_types[0].shape, a.input_types[1].shape, [&](int64_t i) { return static_cast<int64_t>(a.inputs[2][i]); },
      [&](int64_t from, int64_t to) { std::copy_n(a.inputs[1].data() + from, width, a.outputs[0].data() + to); });
}

constexpr OpExample kExamples[] = {
    {.in = "[1,1,1,1] [1,1,1,1] i32[1,1]", .below = 1},
    {.in = "[2,3,7,5] [2,3,1,5] i32[2,1]", .below = 7, .out = "[2,3,7,5]"},
    {.in = "[3,2,4,8] [3,2,1,8] i32[3,1]", .below = 9},  // some rows are not written
    {.in = "[0,2,4,8] [0,2,1,8] i32[0,1]"},
    {.in = "[2,3,7,5] [2,3,1,4] i32[2,1]", .error = "wanted a cache [B,H,S,D]"},
    {.in = "[2,3,7,5] [2,3,2,5] i32[2,1]", .error = "the positions must be i32[B,T]"},
};

}  // namespace

constexpr OpDef kCacheAppend = {.name = "cache_append",
                                .infer = Infer,
                                .kernels = {Kernel<float>, Kernel<double>, Kernel<BF16>},
                                .writes = 1,
                                .no_gradient = "a gradient through a write is an error",
                                .reference = Reference,
                                .examples = kExamples};

Var CacheAppend(Var cache, Var rows, Var positions) {
  return Composite("cache_append", {cache, rows, positions}, [&] {
    const Var next = Record(kCacheAppend, {cache, rows, positions});
    RequireBounds("cache_append", positions, cache.dim(2), "rows of the cache", /*ignored=*/-1);
    return next;
  });
}

}  // namespace weft
