// Writes rows [B, H, T, D] into a cache [B, H, S, D] at positions i32 [B, T]:
//   cache[b, h, positions[b, t], d] = rows[b, h, t, d].
// With pages i32 [B, P], the cache is [N, H, S, D], and position p of text b is in page pages[b, p / S], at p % S.
//
// The output is the next version of the cache. A row whose position is outside 0 .. S-1, or with pages outside
// 0 .. P·S-1, is not written, nor is a row whose page is outside 0 .. N-1.
#include <algorithm>

#include "weft/base/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/attributes.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

absl::StatusOr<Types> Infer(const Attrs&, TypeSpan in) {
  const Shape &cache = in[0].shape, &rows = in[1].shape, &positions = in[2].shape;
  const bool paged = in.size() > 3;
  if (cache.rank() != 4 || rows.rank() != 4 || in[0].dtype != in[1].dtype || (!paged && cache.dim(0) != rows.dim(0)) ||
      cache.dim(1) != rows.dim(1) || cache.dim(3) != rows.dim(3)) {
    return ShapeError("cache_append", "wanted a cache [B,H,S,D] and rows [B,H,T,D] of one dtype", in);
  }
  if (in[2].dtype != kI32 || positions != Shape({rows.dim(0), rows.dim(2)})) {
    return ShapeError("cache_append", "the positions must be i32[B,T]", in);
  }
  if (paged && (in[3].dtype != kI32 || in[3].shape.rank() != 2 || in[3].shape.dim(0) != rows.dim(0))) {
    return ShapeError("cache_append", "the pages must be i32[B,P]", in);
  }
  return Types{in[0]};
}

// Calls copy(offset in rows, offset in cache), both in elements, for each row that is written. position(i) and page(i)
// return element i of the positions and of the pages. `pages` is P, or 0 without pages.
template <class Position, class Page, class Copy>
void ForEachRow(const Shape& cache, const Shape& rows, int64_t pages, Position position, Page page, Copy copy) {
  const int64_t heads = rows.dim(1), length = rows.dim(2), width = rows.dim(3), size = cache.dim(2);
  for (int64_t row = 0; row < rows.rows(); ++row) {
    const int64_t text = row / length / heads, head = row / length % heads;
    const int64_t to = position(text * length + row % length);
    if (to < 0 || to >= size * std::max<int64_t>(pages, 1)) continue;
    const int64_t matrix = pages == 0 ? text : page(text * pages + to / size);
    if (matrix >= 0 && matrix < cache.dim(0)) copy(row * width, ((matrix * heads + head) * size + to % size) * width);
  }
}

template <class T>
void Kernel(const KernelArgs& a, Rect tile) {
  if (tile.rows() == 0) return;
  const int64_t width = a.input_shape(1).dim(3), pages = a.inputs.size() > 3 ? a.input_shape(3).dim(1) : 0;
  ForEachRow(
      a.input_shape(0), a.input_shape(1), pages, [&](int64_t i) { return a.input<int32_t>(2)[i]; },
      [&](int64_t i) { return a.input<int32_t>(3)[i]; },
      [&](int64_t from, int64_t to) { std::copy_n(a.input<T>(1) + from, width, a.output<T>(0) + to); });
}

void Reference(const ReferenceArgs& a) {
  const int64_t width = a.input_types[1].shape.dim(3);
  a.outputs[0] = a.inputs[0];
  const int64_t pages = a.input_types.size() > 3 ? a.input_types[3].shape.dim(1) : 0;
  const auto element = [&](int input) {
    return [&a, input](int64_t i) { return static_cast<int64_t>(a.inputs[input][static_cast<size_t>(i)]); };
  };
  ForEachRow(
      a.input_types[0].shape, a.input_types[1].shape, pages, element(2), element(3),
      [&](int64_t from, int64_t to) { std::copy_n(a.inputs[1].data() + from, width, a.outputs[0].data() + to); });
}

constexpr OpExample kExamples[] = {
    {.in = "[1,1,1,1] [1,1,1,1] i32[1,1]", .below = 1},
    {.in = "[2,3,7,5] [2,3,1,5] i32[2,1]", .below = 7, .out = "[2,3,7,5]"},
    {.in = "[3,2,4,8] [3,2,1,8] i32[3,1]", .below = 9},  // some rows are not written
    {.in = "[0,2,4,8] [0,2,1,8] i32[0,1]"},
    {.in = "[9,2,3,8] [2,2,3,8] i32[2,3] i32[2,3]", .below = 9, .out = "[9,2,3,8]"},  // pages of three positions
    {.in = "[5,2,3,8] [4,2,1,8] i32[4,1] i32[4,2]", .below = 7},  // some positions and pages are outside
    {.in = "[9,2,3,8] [2,2,3,8] i32[2,3] i32[3,3]", .error = "the pages must be i32[B,P]"},
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

Var CacheAppend(Var cache, Var rows, Var positions, Var pages) {
  VarList inputs = {cache, rows, positions};
  if (pages.tape != nullptr) inputs.push_back(pages);
  return Composite("cache_append", inputs, [&] {
    const Var next = RecordAll(kCacheAppend, inputs)[0];
    if (pages.tape != nullptr) RequireBounds("cache_append", pages, cache.dim(0), "pages of the cache");
    const int64_t sources = cache.dim(2) * (pages.tape != nullptr ? pages.dim(1) : 1);
    RequireBounds("cache_append", positions, sources, "rows of the cache", /*ignored=*/-1);
    return next;
  });
}

}  // namespace weft
