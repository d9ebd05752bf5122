// y[o, j, i] = Σ x[o, k, i] over all k of block j of one axis.
//
// Sum (reductions.cc) repeats this op until one block is left. The sums of bf16 are f32.
#include "absl/strings/str_cat.h"
#include "weft/core/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/kernels/axis.h"
#include "weft/ops/kernels/rows.h"
#include "weft/ops/ops.h"
#include "weft/ops/reduction/blocks.h"

namespace weft {
namespace {

absl::StatusOr<Types> Infer(const Attrs& attrs, TypeSpan in) {
  const auto [axis, block] = attrs.as<BlockAttrs>();
  WEFT_RETURN_IF_ERROR(CheckAxis("sum_blocks", axis, in));
  if (block < 1) return ShapeError("sum_blocks", absl::StrCat("a block of ", block, " elements"), in);
  TensorType out = {ComputedIn(in[0].dtype), in[0].shape};
  out.shape.set_dim(axis, std::max<int64_t>(1, BlockCount(in[0].shape.dim(axis), block)));
  return Types{out};
}

Rect Access(const OpArgs& args, int operand, Rect tile) {
  return operand == 0 ? BlockAccess(args.attrs.as<BlockAttrs>(), args.inputs[0].shape, tile) : tile;
}

template <class T>
void Kernel(const KernelArgs& a, Rect tile) {
  const RowKernels<T>& rows = Rows<T>();
  const T* const x = a.input<T>(0);
  Computed<T>* const y = a.output<Computed<T>>(0);
  ForEachBlock(
      a.attrs.as<BlockAttrs>(), a.input_shape(0), tile,
      [&](int64_t from, int64_t count, int64_t to) { y[to] = rows.sum(x + from, count); },
      [&](int64_t from, int64_t stride, int64_t count, int64_t to, int64_t n) {
        rows.sum_rows(x + from, stride, count, y + to, n);
      });
}

// dx[o, k, i] = dy[o, block of k, i]
VarList Gradient(const GradientArgs& a) {
  const auto [axis, block] = a.attrs.as<BlockAttrs>();
  return {RepeatBlocks(Cast(a.grad(0), a.input(0).dtype()), a.input(0).shape(), axis, block)};
}

void Reference(const ReferenceArgs& a) {
  const auto [axis, block] = a.attrs.as<BlockAttrs>();
  const Shape& shape = a.input_types[0].shape;
  const int64_t n = shape.dim(axis), inner = shape.Product(axis + 1, shape.rank());
  const int64_t blocks = a.output_types[0].shape.dim(axis);
  for (int64_t e = 0; e < shape.elements(); ++e) {
    const int64_t o = e / inner / n, k = e / inner % n, i = e % inner;
    a.outputs[0][(o * blocks + k / block) * inner + i] += a.inputs[0][e];
  }
}

Cost CostOf(const OpArgs& args) {
  return {.flops = static_cast<double>(args.inputs[0].shape.elements()),
          .bytes = static_cast<double>(args.inputs[0].bytes() + args.outputs[0].bytes())};
}

template <int axis, int64_t block>
VarList Example(VarSpan in) {
  return {SumBlocks(in[0], axis, block)};
}

constexpr OpExample kExamples[] = {
    {.in = "[1]", .record = Example<0, 64>, .out = "[1]"},
    {.in = "[130]", .record = Example<0, 64>, .out = "[3]"},
    {.in = "[3,257]", .record = Example<1, 64>, .out = "[3,5]"},
    {.in = "[257,3]", .record = Example<0, 64>, .out = "[5,3]"},
    {.in = "[130,67]", .record = Example<0, 64>, .out = "[3,67]"},
    {.in = "[2,7,3,5]", .record = Example<1, 3>, .out = "[2,3,3,5]"},
    {.in = "[2,3,2,7,1,5]", .record = Example<3, 2>, .out = "[2,3,2,4,1,5]"},
    {.in = "[4,0]", .record = Example<1, 64>, .out = "[4,1]"},  // sums of nothing
    {.in = "[0,4]", .record = Example<0, 64>, .out = "[1,4]"},
    {.in = "[0,4]", .record = Example<1, 64>, .out = "[0,1]"},
    {.in = "[3]", .record = Example<1, 64>, .error = "axis 1 is outside rank 1"},
    {.in = "[3]",
     .record = [](VarSpan in) { return VarList{Sum(in[0], -2)}; },
     .error = "sum: axis -2 is outside rank 1"},
    {.in = "i32[1]", .record = [](VarSpan in) { return VarList{Sum(in[0], 0)}; }, .error = "sum: not defined for i32"},
    {.in = "i32[2]", .record = [](VarSpan in) { return VarList{Sum(in[0])}; }, .error = "sum: not defined for i32"},
    {.in = "[3]", .record = Example<0, 0>, .error = "a block of 0 elements"},
};

}  // namespace

constexpr OpDef kSumBlocks = {.name = "sum_blocks",
                              .infer = Infer,
                              .kernels = {Kernel<float>, Kernel<double>, Kernel<BF16>},
                              .cut = Cut::kBoth,
                              .access = Access,
                              .gradient = Gradient,
                              .reference = Reference,
                              .autocast = Autocast::kFirst,
                              .cost = CostOf,
                              .attrs = AttrOpsOf<BlockAttrs>(),
                              .examples = kExamples};

Var SumBlocks(Var x, int axis, int64_t block) {
  return Record(kSumBlocks, {x}, Attrs::Of(BlockAttrs{.axis = axis, .block = block}));
}

Var RepeatBlocks(Var y, const Shape& shape, int axis, int64_t block) {
  const int64_t n = shape.dim(axis), blocks = BlockCount(n, block);
  if (blocks <= 1) return BroadcastTo(y, shape);
  const int64_t outer = shape.Product(0, axis), inner = shape.Product(axis + 1, shape.rank());
  const Var repeated = BroadcastTo(Reshape(y, {outer, blocks, 1, inner}), {outer, blocks, block, inner});
  const Var whole = Reshape(repeated, {outer, blocks * block, inner});
  return Reshape(blocks * block == n ? whole : Slice(whole, 1, 0, n), shape);
}

Rect BlockAccess(BlockAttrs attrs, const Shape& in, Rect tile) {
  const int64_t n = in.dim(attrs.axis), block = attrs.block, blocks = std::max<int64_t>(1, BlockCount(n, block));
  if (tile.rows() == 0) return {};
  if (attrs.axis == in.rank() - 1) {
    return {tile.row_begin, tile.row_end, tile.col_begin * block, std::min(n, tile.col_end * block)};
  }
  const int64_t inner = in.Product(attrs.axis + 1, in.rank() - 1);
  const auto first_row = [&](int64_t j) {  // of block j % blocks in matrix [n, inner] number j / blocks
    return (j / blocks * n + std::min(n, j % blocks * block)) * inner;
  };
  const int64_t last = (tile.row_end - 1) / inner;
  const int64_t end = (last / blocks * n + std::min(n, (last % blocks + 1) * block)) * inner;
  return {first_row(tile.row_begin / inner), end, tile.col_begin, tile.col_end};
}

Rect RowSumsAccess(const OpArgs& args, int operand, Rect tile) {
  if (operand <= static_cast<int>(args.inputs.size())) {
    return DefaultAccess(args, args.outputs[0].shape, operand, tile);
  }
  return {tile.row_begin / kSumBlock, BlockCount(tile.row_end, kSumBlock), tile.col_begin, tile.col_end};
}

}  // namespace weft
