// weight_matmul computes y = a wᵀ for a weight w that is stored by rows, in f32, bf16, f16 or a block format
// (ops/kernels/weights/weight_rows.h). A tile is a range of rows of w, that is of columns of y. From 80 rows of a on,
// or 128 for block formats, it is also a range of rows of a.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "weft/base/status.h"
#include "weft/core/block_formats.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/attributes.h"
#include "weft/ops/kernels/weights/weight_rows.h"
#include "weft/ops/ops.h"
#include "weft/ops/product/matmul.h"

namespace weft {
namespace {

// A tile has about this many bytes of w, which hides the start of a task. A smaller weight has about kMinTiles tiles,
// so that several threads share it.
constexpr int64_t kTileBytes = 256 << 10, kMinTiles = 4;
// Minimum rows of a tile, so that arithmetic outweighs reading w again for each tile. From 80 rows on, tiles cut rows
// first. Neighbouring nodes then have the same rows in a tile, and these rows stay in the cache of one core.
constexpr int64_t kTileRows = 40;
// The same for a block format: a tile also rounds its rows of a and, with AVX-512 VNNI, copies w.
constexpr int64_t kBlockTileRows = 64;
// With at least this many rows, tiles cut only rows, so that each row of a is rounded once. 512 rows give 8 tiles.
constexpr int64_t kWholeColumns = 512;

absl::StatusOr<Types> Infer(const Attrs&, TypeSpan in) {
  const auto& [a, w] = std::tie(in[0], in[1]);
  if (a.dtype != kF32 || a.shape.rank() < 1) return ShapeError("weight_matmul", "a must be f32 of rank >= 1", in);
  if (w.shape.rank() != 2) return ShapeError("weight_matmul", "w needs rank 2", in);
  if (!IsWeightFormat(w.dtype)) {
    return ShapeError("weight_matmul", absl::StrCat("w must be ", WeightFormatList()), in);
  }
  const int64_t inner = a.shape.dim(-1);
  if (inner != w.shape.dim(1)) {
    return ShapeError("weight_matmul", absl::StrCat("inner dimensions differ, ", inner, " vs ", w.shape.dim(1)), in);
  }
  return Types{{a.dtype, WithDim(a.shape, -1, w.shape.dim(0))}};
}

size_t Workspace(const OpArgs& args, absl::Span<const Rect> tiles) {
  int64_t rows = 0;
  for (const Rect& tile : tiles) rows = std::max(rows, tile.rows());
  return WeightRowsWorkspace(args.inputs[1].dtype, rows, args.inputs[0].shape.dim(-1));
}

void Kernel(const KernelArgs& args, Rect tile) {
  const Tensor& w = args.inputs[1];
  const WeightRows weight = {
      .data = w.data, .dtype = w.type.dtype, .cols = w.type.shape.dim(0), .inner = w.type.shape.dim(1)};
  MultiplyWeightRows(weight, tile.col_begin, tile.col_end, args.input<float>(0) + tile.row_begin * weight.inner,
                     tile.rows(), args.output<float>(0) + tile.row_begin * weight.cols, args.workspace);
}

int64_t Quantum(const OpArgs& args) {
  return EqualParts(args.outputs[0].shape.rows(), IsBlockFormat(args.inputs[1].dtype) ? kBlockTileRows : kTileRows, 1);
}
int64_t ColumnQuantum(const OpArgs& args) {
  const Shape& w = args.inputs[1].shape;
  if (IsBlockFormat(args.inputs[1].dtype) && args.outputs[0].shape.rows() >= kWholeColumns) {
    return std::max<int64_t>(1, w.dim(0));
  }
  const int64_t row_bytes = std::max<int64_t>(1, static_cast<int64_t>(BytesOf(args.inputs[1].dtype, w.dim(1))));
  return EqualParts(w.dim(0), std::max<int64_t>(1, std::min(kTileBytes / row_bytes, w.dim(0) / kMinTiles)), 64);
}

// An element's bits depend on its row of a and its row of w only. The kernel stores the sums of 4 columns of y
// together, so parts have multiples of 16 columns.
std::pair<int64_t, int64_t> Unit(const OpArgs& args) { return {Quantum(args), 16}; }

Rect Access(const OpArgs& args, int operand, Rect tile) {
  if (operand == 2) return tile;
  if (operand == 0) return {tile.row_begin, tile.row_end, 0, args.inputs[0].shape.cols()};
  return {tile.col_begin, tile.col_end, 0, args.inputs[1].shape.cols()};
}

VarList Elementary(const Attrs&, VarSpan in) { return {MatMul(in[0], in[1], {.transpose_b = true})}; }

constexpr OpExample kExamples[] = {
    {.in = "f32[1,1] f32[1,1]", .out = "f32[1,1]"},
    {.in = "f32[3,5] f32[7,5]", .out = "f32[3,7]"},
    {.in = "f32[2,3,130] f32[200,130]", .out = "f32[2,3,200]", .tolerance = kSumTolerance},
    {.in = "f32[1,768] f32[700,768]", .out = "f32[1,700]", .tolerance = kSumTolerance},  // several tiles
    {.in = "f32[0,5] f32[7,5]", .out = "f32[0,7]"},
    {.in = "f32[3,0] f32[7,0]", .out = "f32[3,7]"},
    {.in = "f32[] f32[1,1]", .error = "a must be f32 of rank >= 1"},
    {.in = "f64[3,5] f64[7,5]", .error = "a must be f32 of rank >= 1"},
    {.in = "f32[3,5] f32[7]", .error = "w needs rank 2"},
    {.in = "f32[3,5] i32[7,5]", .error = "w must be f32, bf16, f16, q8_0, "},
    {.in = "f32[3,5] f32[7,6]", .error = "inner dimensions differ, 5 vs 6"},
};

}  // namespace

bool FastWithManyRows(DType weight) { return IsBlockFormat(weight) && HasByteDotProducts(); }

constexpr OpDef kWeightMatmul = {.name = "weight_matmul",
                                 .infer = Infer,
                                 .kernels = {Kernel},
                                 .workspace = Workspace,
                                 .unit = Unit,
                                 .cut = Cut::kBoth,
                                 .quantum = Quantum,
                                 .column_quantum = ColumnQuantum,
                                 .access = Access,
                                 .no_gradient = "it is recorded after gradients are expanded",
                                 .elementary = Elementary,
                                 .cost = ProductCost,
                                 .examples = kExamples};

}  // namespace weft
