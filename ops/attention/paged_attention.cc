// The op paged_attention computes attention of single tokens to cached keys and values: y = softmax(scores) · v for
// each head, where scores are scale · q kᵀ, limited by `soft_cap` and then masked (attention.cc).
//
// Texts share caches [N, G, S, width] of N pages of S positions, at most kCachePage (Kwon et al., "Efficient memory
// management for large language model serving with PagedAttention", 2023). Inputs are query, keys, values, pages i32
// [B, P], positions i32 [B, 1], and masks that broadcast to [B, H, 1, P · S]. Position p of row b is in page
// pages[b, p / S]. Row b sees positions up to positions[b], and with `left` >= 0, only from positions[b] - left on. A
// row that sees nothing gets zeros. The output is [B, 1, H · value_width].
//
// With at most kFewRows rows, or with pages of less than kCachePage positions, each row reads its keys and values in
// place. Otherwise, neighbouring rows that are consecutive positions of one text share copies. In all cases, the bits
// of a row depend on its own operands only.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "weft/base/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/attention/attention.h"
#include "weft/ops/attributes.h"
#include "weft/ops/ops.h"
#include "weft/ops/product/matmul.h"

namespace weft {
namespace {

static_assert(kCachePage == kAttentionBlock);

constexpr int kPages = 3, kPositions = 4;
constexpr size_t kFirstMask = 5;

// Holds the sizes of a node. `page`: positions of a page. `sources`: the positions that fit into a row's pages.
struct PagedSizes : AttentionSizes {
  int64_t pages, page;

  PagedSizes(const Attrs& attrs, TypeSpan in)
      : AttentionSizes(attrs, in), pages(in[kPages].shape.dim(1)), page(sources) {
    sources = pages * page;
  }
  bool one_by_one() const { return batch <= kFewRows || page < kCachePage; }
};

absl::StatusOr<Types> Infer(const Attrs& attrs, TypeSpan in) {
  const AttentionAttrs a = attrs.as<AttentionAttrs>();
  const auto error = [&](const auto&... parts) { return ShapeError("paged_attention", absl::StrCat(parts...), in); };
  if (a.heads < 1 || a.groups < 1 || a.heads % a.groups != 0) {
    return error("heads = ", a.heads, " is not a multiple of the ", a.groups, " heads of keys and values");
  }
  if (a.right >= 0 || a.by_lse || a.dropout != 0) {
    return error("right, by_lse and dropout must not be set");
  }
  const Shape& query = in[0].shape;
  const int64_t batch = query.rank() > 0 ? query.dim(0) : 0, columns = a.query_column + a.heads * a.key_width;
  const bool by_head = query == Shape({batch, a.heads, 1, a.key_width}) && a.query_column == 0;
  const bool by_row = query.rank() == 3 && query.dim(1) == 1 && a.query_column >= 0 && columns <= query.dim(2);
  if (!by_head && !by_row) {
    return error("query must be [B,", a.heads, ",1,", a.key_width, "], or [B,1,C] with C >= ", columns);
  }
  for (int i : {1, 2}) {
    const char* const name = i == 1 ? "keys" : "values";
    const Shape& cache = in[i].shape;
    const int64_t width = i == 1 ? a.key_width : a.value_width;
    if (in[i].dtype != in[0].dtype) return error(name, " are not of the query's dtype");
    const bool fits = cache.rank() == 4 && cache.dim(2) >= 1 && cache.dim(2) <= kCachePage &&
                      cache == Shape({in[1].shape.dim(0), a.groups, in[1].shape.dim(2), width});
    if (!fits) return error(name, " must be [N,", a.groups, ",S,", width, "] with S of at most ", kCachePage);
  }
  if (in[kPages].dtype != kI32 || in[kPages].shape.rank() != 2 || in[kPages].shape.dim(0) != batch) {
    return error("the pages must be i32[B,P]");
  }
  if (in[kPositions] != TensorType{kI32, {batch, 1}}) return error("the positions must be i32[B,1]");
  if (in.size() - kFirstMask > kMaxAttentionMasks) return error("more than ", kMaxAttentionMasks, " masks");
  const Shape scores = PagedSizes(attrs, in).scores();
  for (size_t i = kFirstMask; i < in.size(); ++i) {
    if (in[i].dtype != kBool && in[i].dtype != in[0].dtype) return error("a mask must be bool or of the query's dtype");
    if (Broadcast(in[i].shape, scores) != scores) return error("a mask does not broadcast to ", ToString(scores));
  }
  return Types{{in[0].dtype, {batch, 1, a.heads * a.value_width}}};
}

// Returns the end of the rows from `row` on, before `end`, that are consecutive positions of one text.
int64_t EndOfText(const int32_t* pages, const int32_t* positions, int64_t page_count, int64_t row, int64_t end) {
  int64_t next = row + 1;
  const auto follows = [&] {
    const int64_t seen = positions[next] / kCachePage + 1;  // pages
    const int32_t* const own = pages + next * page_count;
    return positions[row] >= 0 && positions[next] == positions[next - 1] + 1 && seen <= page_count &&
           std::equal(own, own + seen, pages + row * page_count);
  };
  while (next < end && follows()) ++next;
  return next;
}

template <class T>
void Kernel(const KernelArgs& args, Rect tile) {
  const AttentionAttrs attrs = args.attrs.as<AttentionAttrs>();
  const PagedSizes sizes(args.attrs, {args.inputs[0].type, args.inputs[1].type, {}, args.inputs[kPages].type});
  const int32_t *const pages = args.input<int32_t>(kPages), *const positions = args.input<int32_t>(kPositions);
  const int64_t columns = sizes.heads * sizes.value_width;
  AttentionHead<T> head = {.page_size = sizes.page,
                           .key_page = sizes.groups * sizes.page * sizes.key_width,
                           .value_page = sizes.groups * sizes.page * sizes.value_width,
                           .one_by_one = sizes.one_by_one(),
                           .key_width = sizes.key_width,
                           .value_width = sizes.value_width,
                           .scale = attrs.scale,
                           .soft_cap = attrs.soft_cap};
  for (int64_t row = tile.row_begin, next = row; row < tile.row_end; row = next) {
    next = head.one_by_one ? row + 1 : EndOfText(pages, positions, sizes.pages, row, tile.row_end);
    head.pages = pages + row * sizes.pages;
    head.targets = next - row;
    // Band counts from the last source. If the row's position is beyond its pages, then the last source is `beyond`
    // positions before it, so the limit shrinks by `beyond`. EndOfText joins no other row to such a row.
    const int64_t seen = int64_t{1} + positions[next - 1], beyond = std::max<int64_t>(seen - sizes.sources, 0);
    head.sources = std::clamp<int64_t>(seen, 0, sizes.sources);
    if (attrs.left >= 0 && beyond > attrs.left) head.sources = 0;
    head.band = Band(attrs.left < 0 ? -1 : attrs.left - beyond, 0);
    for (int64_t h = tile.col_begin / sizes.value_width; h < tile.col_end / sizes.value_width; ++h) {
      const int64_t group = h / (sizes.heads / sizes.groups);
      head.query = HeadRows(args.input<T>(0), args.input_shape(0), row, h, attrs.query_column, sizes.key_width);
      head.query.stride = args.input_shape(0).elements() / std::max<int64_t>(sizes.batch, 1);
      head.key = {args.input<T>(1) + group * sizes.page * sizes.key_width, sizes.key_width};
      head.value = {args.input<T>(2) + group * sizes.page * sizes.value_width, sizes.value_width};
      head.mask_count = 0;
      for (size_t i = kFirstMask; i < args.inputs.size(); ++i) {
        AttentionMask& mask = head.masks[head.mask_count++] = MaskOfHead(args.inputs[i], sizes.scores(), row, h);
        const Shape& shape = args.input_shape(i);
        mask.target_stride = shape.rank() == 4 && shape.dim(0) > 1 ? shape.elements() / shape.dim(0) : 0;
      }
      Computed<T> lse;
      AttentionKernelsOf<T>().forward(head, 0, head.targets,
                                      {args.output<T>(0) + row * columns + h * sizes.value_width, columns}, {&lse, 0},
                                      args.workspace);
    }
  }
}

int64_t Quantum(const OpArgs& args) {
  const PagedSizes sizes(args.attrs, args.inputs);
  return !sizes.one_by_one() && sizes.batch % kCachePage == 0 ? kCachePage : 1;
}

Rect Access(const OpArgs& args, int operand, Rect tile) {
  if (operand == static_cast<int>(args.inputs.size())) return tile;
  if (operand != 0) return WholeRect(args.inputs[operand].shape);
  const AttentionAttrs a = args.attrs.as<AttentionAttrs>();
  if (args.inputs[0].shape.rank() == 4) return {tile.row_begin * a.heads, tile.row_end * a.heads, 0, a.key_width};
  const auto column = [&](int64_t value_column) { return a.query_column + value_column / a.value_width * a.key_width; };
  return {tile.row_begin, tile.row_end, column(tile.col_begin), column(tile.col_end)};
}

// Returns the rows of each text, [B, G, P·S, D].
Var RowsOfPages(Var cache, Var pages) {
  const int64_t batch = pages.dim(0), groups = cache.dim(1), size = cache.dim(2), width = cache.dim(3);
  const Var rows = Record(kEmbedding, {Reshape(cache, {cache.dim(0), groups * size * width}), pages});
  const Var by_group = Permute(Reshape(rows, {batch, pages.dim(1), groups, size, width}), {0, 2, 1, 3, 4});
  return Reshape(by_group, {batch, groups, pages.dim(1) * size, width});
}

VarList Elementary(const Attrs& attrs, VarSpan in) {
  const Var pages = in[kPages], position = in[kPositions];
  const int64_t batch = in[0].dim(0), sources = pages.dim(1) * in[1].dim(2);
  VarList inputs = {in[0], RowsOfPages(in[1], pages), RowsOfPages(in[2], pages)};
  const Var row = Reshape(Cast(position, kF64), {batch, 1, 1, 1}), source = Iota(position.tape, kF64, sources);
  inputs.push_back(Less(row, source));
  // SpellAttention would count `left` from the last source, so a mask counts it from each row's own position.
  AttentionAttrs unlimited = attrs.as<AttentionAttrs>();
  if (unlimited.left >= 0) inputs.push_back(Less(source, row + static_cast<double>(-unlimited.left)));
  unlimited.left = -1;
  inputs.insert(inputs.end(), in.begin() + kFirstMask, in.end());
  const ElementaryAttention e = SpellAttention(Attrs::Of(unlimited), inputs, 3);
  return {Cast(ByRow(MatMul(Softmax(e.scores), e.value)), in[0].dtype())};
}

Cost CostOf(const OpArgs& args) {
  const PagedSizes sizes(args.attrs, args.inputs);
  // The positions are not known here. A row is assumed to see half of its pages, or its whole window if that is less.
  const int64_t band = Band(args.attrs.as<AttentionAttrs>().left).left;
  const double seen = static_cast<double>(sizes.batch * std::min((sizes.sources + 1) / 2, band + 1));
  const double key_value = static_cast<double>(sizes.key_width + sizes.value_width);
  const auto bytes = static_cast<double>(SizeOf(args.inputs[0].dtype));
  return {.flops = 2 * seen * static_cast<double>(sizes.heads) * key_value,
          .bytes = seen * static_cast<double>(sizes.groups) * key_value * bytes};
}

constexpr AttentionAttrs kOneHead = {.key_width = 3, .value_width = 2, .scale = 0.5};
constexpr AttentionAttrs kGrouped = {.heads = 4, .groups = 2, .key_width = 5, .value_width = 5, .scale = -0.7};
constexpr AttentionAttrs kCapped = {
    .heads = 2, .groups = 2, .key_width = 4, .value_width = 3, .query_column = 1, .scale = 2, .soft_cap = 1.5};
constexpr AttentionAttrs kWindow = {.key_width = 3, .value_width = 2, .scale = 0.5, .left = 70};
constexpr AttentionAttrs kNarrow = {.key_width = 3, .value_width = 2, .scale = 0.5, .left = 5};

constexpr OpExample kExamples[] = {
    {.in = "[1,1,3] [1,1,64,3] [1,1,64,2] i32[1,1] i32[1,1]",
     .record = RecordWith<kPagedAttention, kOneHead>,
     .below = 1,
     .out = "[1,1,2]"},
    {.in = "[3,1,3] [140,1,64,3] [140,1,64,2] i32[3,2] i32[3,1]",  // some positions are beyond the pages
     .record = RecordWith<kPagedAttention, kOneHead>,
     .below = 140,
     .out = "[3,1,2]",
     .tolerance = 1e-5},
    {.in = "[3,1,3] [250,1,64,3] [250,1,64,2] i32[3,3] i32[3,1]",  // some positions are beyond the pages
     .record = RecordWith<kPagedAttention, kWindow>,
     .below = 250,
     .out = "[3,1,2]",
     .tolerance = 1e-5},
    {.in = "[20,1,3] [250,1,64,3] [250,1,64,2] i32[20,1] i32[20,1]",  // most windows are beyond the pages
     .record = RecordWith<kPagedAttention, kNarrow>,
     .below = 250,
     .tolerance = 1e-5},
    {.in = "[5,1,3] [9,1,4,3] [9,1,4,2] i32[5,3] i32[5,1]", .record = RecordWith<kPagedAttention, kNarrow>, .below = 9},
    {.in = "[70,1,3] [190,1,64,3] [190,1,64,2] i32[70,3] i32[70,1]",
     .record = RecordWith<kPagedAttention, kWindow>,
     .below = 190,
     .tolerance = 1e-5},
    {.in = "[5,4,1,5] [9,2,64,5] [9,2,64,5] i32[5,1] i32[5,1]",
     .record = RecordWith<kPagedAttention, kGrouped>,
     .below = 9,
     .out = "[5,1,20]"},
    {.in = "[4,1,12] [7,2,64,4] [7,2,64,3] i32[4,2] i32[4,1] bool[4,1,1,128] [2,1,1]",
     .record = RecordWith<kPagedAttention, kCapped>,
     .below = 7,
     .out = "[4,1,6]"},
    {.in = "[70,1,12] [60,2,64,4] [60,2,64,3] i32[70,1] i32[70,1] [70,1,1,64]",
     .record = RecordWith<kPagedAttention, kCapped>,
     .below = 60,
     .tolerance = 1e-5},
    {.in = "[64,4,1,5] [2,2,64,5] [2,2,64,5] i32[64,1] i32[64,1]",  // many rows in few pages
     .record = RecordWith<kPagedAttention, kGrouped>,
     .below = 2},
    {.in = "[5,4,1,5] [9,2,1,5] [9,2,1,5] i32[5,130] i32[5,1]",  // pages of one position
     .record = RecordWith<kPagedAttention, kGrouped>,
     .below = 9,
     .out = "[5,1,20]"},
    {.in = "[70,1,12] [60,2,3,4] [60,2,3,3] i32[70,30] i32[70,1] [70,1,1,90]",  // a page in two blocks
     .record = RecordWith<kPagedAttention, kCapped>,
     .below = 60,
     .tolerance = 1e-5},
    {.in = "[0,1,3] [1,1,64,3] [1,1,64,2] i32[0,1] i32[0,1]", .record = RecordWith<kPagedAttention, kOneHead>},
    {.in = "[1,2,3] [1,1,64,3] [1,1,64,2] i32[1,1] i32[1,1]",
     .record = RecordWith<kPagedAttention, kOneHead>,
     .error = "query must be [B,1,1,3], or [B,1,C] with C >= 3"},
    {.in = "[1,1,3] [1,1,65,3] [1,1,65,2] i32[1,1] i32[1,1]",
     .record = RecordWith<kPagedAttention, kOneHead>,
     .error = "keys must be [N,1,S,3] with S of at most 64"},
    {.in = "[1,1,3] [1,1,64,3] [2,1,64,2] i32[1,1] i32[1,1]",
     .record = RecordWith<kPagedAttention, kOneHead>,
     .error = "values must be [N,1,S,2]"},
    {.in = "[1,1,3] [1,1,64,3] [1,1,32,2] i32[1,1] i32[1,1]",
     .record = RecordWith<kPagedAttention, kOneHead>,
     .error = "values must be [N,1,S,2]"},
    {.in = "[1,1,3] [1,1,64,3] [1,1,64,2] i32[2,1] i32[1,1]",
     .record = RecordWith<kPagedAttention, kOneHead>,
     .error = "the pages must be i32[B,P]"},
    {.in = "[1,1,3] [1,1,64,3] [1,1,64,2] i32[1,1] i32[1]",
     .record = RecordWith<kPagedAttention, kOneHead>,
     .error = "the positions must be i32[B,1]"},
    {.in = "[1,1,3] [1,1,64,3] [1,1,64,2] i32[1,1] i32[1,1] bool[65]",
     .record = RecordWith<kPagedAttention, kOneHead>,
     .error = "does not broadcast to [1,1,1,64]"},
};

}  // namespace

constexpr OpDef kPagedAttention = {.name = "paged_attention",
                                   .infer = Infer,
                                   .kernels = {Kernel<float>, Kernel<double>, Kernel<BF16>},
                                   .workspace = ForwardWorkspace,
                                   .cut = Cut::kBoth,
                                   .quantum = Quantum,
                                   .column_quantum = HeadColumns,
                                   .access = Access,
                                   .no_gradient = "it reads a cache",
                                   .elementary = Elementary,
                                   .cost = CostOf,
                                   .attrs = AttrOpsOf<AttentionAttrs>(),
                                   .examples = kExamples};

Var ReadPages(Var cache, Var pages) {
  return Composite("read_pages", {cache, pages}, [&]() -> absl::StatusOr<Var> {
    if (cache.shape().rank() != 4 || pages.shape().rank() != 2) {
      return ShapeError("read_pages", "wanted a cache [N,G,S,D] and pages [B,P]", {cache.type(), pages.type()});
    }
    RequireBounds("read_pages", pages, cache.dim(0), "pages of the cache");
    return RowsOfPages(cache, pages);
  });
}

}  // namespace weft
