// These ops reduce blocks of an axis, where x is seen as [outer, n, inner], or blocks of rows:
//   sum_blocks: y[o, j, i] = Σ x[o, k, i] over all k of block j. Sums of bf16 are f32.
//   max: y[o, 0, i] = max_k x[o, k, i], where the axis is one block; NaN if any x[o, k, i] is.
//   square_sum_blocks: y[j] = Σ x² over block j, [blocks]. A block is max(1, 4096 / cols) whole rows.
//
// Sum (reductions.cc) repeats sum_blocks until one block is left.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "weft/base/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/attributes.h"
#include "weft/ops/kernels/rows/axis.h"
#include "weft/ops/kernels/rows/rows.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

// Returns the rectangle of `in` [outer, n, inner] that a tile of the output [outer, blocks, inner] reads.
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

// Reduces the blocks of a tile of the output [outer, blocks, inner]. If the axis is the last, `along` reduces
// neighbours to one element. Otherwise `across` reduces rows of x, which are `stride` elements apart, to a row of y.
template <class T, class Y>
void ReduceBlocks(const KernelArgs& a, BlockAttrs attrs, Rect tile, Y (*along)(const T* x, int64_t n),
                  void (*across)(const T* x, int64_t stride, int64_t rows, Y* y, int64_t n)) {
  const Shape& in = a.input_shape(0);
  const T* const x = a.input<T>(0);
  Y* const y = a.output<Y>(0);
  const int64_t n = in.dim(attrs.axis), block = attrs.block, blocks = std::max<int64_t>(1, BlockCount(n, block));
  const bool last = attrs.axis == in.rank() - 1;
  const int64_t cols = last ? blocks : in.cols();
  const int64_t inner = last ? 1 : in.Product(attrs.axis + 1, in.rank() - 1);  // rows between neighbours on the axis
  for (int64_t row = tile.row_begin; row < tile.row_end; ++row) {
    if (last) {
      for (int64_t j = tile.col_begin; j < tile.col_end; ++j) {
        y[row * cols + j] = along(x + row * n + j * block, std::min(block, n - j * block));
      }
      continue;
    }
    const int64_t i = row % inner, j = row / inner % blocks, o = row / inner / blocks;
    across(x + ((o * n + j * block) * inner + i) * cols + tile.col_begin, inner * cols, std::min(block, n - j * block),
           y + row * cols + tile.col_begin, tile.cols());
  }
}

// Returns the gradient of a sum of blocks: a value of `shape` with each element of y repeated for its whole block.
Var RepeatBlocks(Var y, const Shape& shape, int axis, int64_t block) {
  const int64_t n = shape.dim(axis), blocks = BlockCount(n, block);
  if (blocks <= 1) return BroadcastTo(y, shape);
  const int64_t outer = shape.Product(0, axis), inner = shape.Product(axis + 1, shape.rank());
  // If `inner` is 1, a block is a row. With a last axis of 1, broadcast_to would copy number by number.
  const Var repeated = inner == 1 ? BroadcastTo(Reshape(y, {outer, blocks, 1}), {outer, blocks, block})
                                  : BroadcastTo(Reshape(y, {outer, blocks, 1, inner}), {outer, blocks, block, inner});
  const Var whole = Reshape(repeated, {outer, blocks * block, inner});
  return Reshape(blocks * block == n ? whole : Slice(whole, 1, 0, n), shape);
}

// Counts an operation for each element of x.
Cost CostOf(const OpArgs& args) {
  return {.flops = static_cast<double>(args.inputs[0].shape.elements()), .bytes = OperandBytes(args)};
}

absl::StatusOr<Types> InferSum(const Attrs& attrs, TypeSpan in) {
  const auto [axis, block] = attrs.as<BlockAttrs>();
  WEFT_RETURN_IF_ERROR(CheckAxis("sum_blocks", axis, in));
  if (block < 1) return ShapeError("sum_blocks", absl::StrCat("a block of ", block, " elements"), in);
  const int64_t blocks = std::max<int64_t>(1, BlockCount(in[0].shape.dim(axis), block));
  return Types{{ComputedIn(in[0].dtype), WithDim(in[0].shape, axis, blocks)}};
}

Rect SumAccess(const OpArgs& args, int operand, Rect tile) {
  return operand == 0 ? BlockAccess(args.attrs.as<BlockAttrs>(), args.inputs[0].shape, tile) : tile;
}

template <class T>
void SumKernel(const KernelArgs& a, Rect tile) {
  ReduceBlocks(a, a.attrs.as<BlockAttrs>(), tile, Rows<T>().sum, Rows<T>().sum_rows);
}

// dx[o, k, i] = dy[o, block of k, i]
VarList SumGradient(const GradientArgs& a) {
  const auto [axis, block] = a.attrs.as<BlockAttrs>();
  return {RepeatBlocks(Cast(a.grad(0), a.input(0).dtype()), a.input(0).shape(), axis, block)};
}

void SumReference(const ReferenceArgs& a) {
  const auto [axis, block] = a.attrs.as<BlockAttrs>();
  const Shape& shape = a.input_types[0].shape;
  const int64_t n = shape.dim(axis), inner = shape.Product(axis + 1, shape.rank());
  const int64_t blocks = a.output_types[0].shape.dim(axis);
  for (int64_t e = 0; e < shape.elements(); ++e) {
    const int64_t o = e / inner / n, k = e / inner % n, i = e % inner;
    a.outputs[0][(o * blocks + k / block) * inner + i] += a.inputs[0][e];
  }
}

constexpr OpExample kSumExamples[] = {
    {.in = "[1]", .record = RecordCall<SumBlocks, 0, 64>, .out = "[1]"},
    {.in = "[130]", .record = RecordCall<SumBlocks, 0, 64>, .out = "[3]"},
    {.in = "[3,257]", .record = RecordCall<SumBlocks, 1, 64>, .out = "[3,5]"},
    {.in = "[257,3]", .record = RecordCall<SumBlocks, 0, 64>, .out = "[5,3]"},
    {.in = "[130,67]", .record = RecordCall<SumBlocks, 0, 64>, .out = "[3,67]"},
    {.in = "[2,7,3,5]", .record = RecordCall<SumBlocks, 1, 3>, .out = "[2,3,3,5]"},
    {.in = "[2,3,2,7,1,5]", .record = RecordCall<SumBlocks, 3, 2>, .out = "[2,3,2,4,1,5]"},
    {.in = "[4,0]", .record = RecordCall<SumBlocks, 1, 64>, .out = "[4,1]"},  // sums of nothing
    {.in = "[0,4]", .record = RecordCall<SumBlocks, 0, 64>, .out = "[1,4]"},
    {.in = "[0,4]", .record = RecordCall<SumBlocks, 1, 64>, .out = "[0,1]"},
    {.in = "[3]", .record = RecordCall<SumBlocks, 1, 64>, .error = "axis 1 is outside rank 1"},
    {.in = "[3]",
     .record = [](VarSpan in) { return VarList{Sum(in[0], -2)}; },
     .error = "sum: axis -2 is outside rank 1"},
    {.in = "i32[1]", .record = [](VarSpan in) { return VarList{Sum(in[0], 0)}; }, .error = "sum: not defined for i32"},
    {.in = "i32[2]", .record = [](VarSpan in) { return VarList{Sum(in[0])}; }, .error = "sum: not defined for i32"},
    {.in = "[3]", .record = RecordCall<SumBlocks, 0, 0>, .error = "a block of 0 elements"},
};

// Returns the whole axis as one block.
BlockAttrs WholeAxis(const Attrs& attrs, const Shape& shape) {
  const int axis = attrs.as<AxisAttrs>().axis;
  return {.axis = axis, .block = shape.dim(axis)};
}

absl::StatusOr<Types> InferMax(const Attrs& attrs, TypeSpan in) {
  const int axis = attrs.as<AxisAttrs>().axis;
  WEFT_RETURN_IF_ERROR(CheckAxis("max", axis, in));
  if (in[0].shape.dim(axis) == 0) return ShapeError("max", absl::StrCat("axis ", axis, " has no elements"), in);
  return Types{{in[0].dtype, WithDim(in[0].shape, axis, 1)}};
}

Rect MaxAccess(const OpArgs& args, int operand, Rect tile) {
  const Shape& shape = args.inputs[0].shape;
  return operand == 0 ? BlockAccess(WholeAxis(args.attrs, shape), shape, tile) : tile;
}

template <class T>
void MaxKernel(const KernelArgs& a, Rect tile) {
  ReduceBlocks(a, WholeAxis(a.attrs, a.input_shape(0)), tile, Rows<T>().max, Rows<T>().max_rows);
}

// dx = dy / (number of elements equal to y) where x equals y, else 0, also if dy is infinite. NaN counts as equal to
// NaN.
VarList MaxGradient(const GradientArgs& a) {
  const int axis = a.attrs.as<AxisAttrs>().axis;
  const Var x = a.input(0);
  const Var equal = MaskFill(Equal(x, a.output(0)), IsNan(x), true);
  const Var dx = a.grad(0) / Sum(Cast(equal, x.dtype()), axis, true);
  return {MaskFill(BroadcastTo(dx, x.shape()), Not(equal), 0)};
}

void MaxReference(const ReferenceArgs& a) {
  const int axis = a.attrs.as<AxisAttrs>().axis;
  const Shape& shape = a.input_types[0].shape;
  const int64_t n = shape.dim(axis), inner = shape.Product(axis + 1, shape.rank());
  for (int64_t e = 0; e < shape.elements(); ++e) {
    double& y = a.outputs[0][e / inner / n * inner + e % inner];
    const double x = a.inputs[0][e];
    if (e / inner % n == 0 || x > y || std::isnan(x)) y = x;
  }
}

template <int axis, bool keep>
VarList MaxExample(VarSpan in) {
  return {Max(in[0], axis, keep)};
}

constexpr OpExample kMaxExamples[] = {
    {.in = "[1]", .record = MaxExample<0, true>, .out = "[1]"},
    {.in = "[3,257]", .record = MaxExample<-1, true>, .out = "[3,1]"},
    {.in = "[257,3]", .record = MaxExample<0, false>, .out = "[3]"},
    {.in = "[2,7,3,5]", .record = MaxExample<1, true>, .low = -90, .high = -80, .out = "[2,1,3,5]"},
    {.in = "[7,3]", .record = [](VarSpan in) { return VarList{Max(Concat(VarList(2, in[0]), 0), 0)}; }},  // ties
    {.in = "[0,4]", .record = MaxExample<1, true>, .out = "[0,1]"},
    {.in = "[4,0]", .record = MaxExample<1, true>, .error = "axis 1 has no elements"},
    {.in = "[3]", .record = MaxExample<1, true>, .error = "axis 1 is outside rank 1"},
};

absl::StatusOr<Types> InferSquareSum(const Attrs&, TypeSpan in) {
  if (!IsFloat(in[0].dtype)) return ShapeError("square_sum_blocks", "x must be of floats", in);
  return Types{{in[0].dtype, {BlockCount(in[0].shape.rows(), SquareSumBlockRows(in[0].shape))}}};
}

int64_t SquareSumQuantum(const OpArgs& args) { return SquareSumBlockRows(args.inputs[0].shape); }

Rect SquareSumAccess(const OpArgs& args, int operand, Rect tile) {
  if (operand == 0) return tile;
  const int64_t rows = SquareSumBlockRows(args.inputs[0].shape);
  return {0, 1, tile.row_begin / rows, BlockCount(tile.row_end, rows)};
}

template <class T>
void SquareSumKernel(const KernelArgs& a, Rect tile) {
  const Shape& shape = a.input_shape(0);
  const int64_t rows = SquareSumBlockRows(shape), cols = shape.cols();
  for (int64_t begin = tile.row_begin; begin < tile.row_end; begin += rows) {
    const int64_t count = std::min(rows, tile.row_end - begin) * cols;
    a.output<T>(0)[begin / rows] = Rows<T>().square_sum(a.input<T>(0) + begin * cols, count);
  }
}

// dx = 2 · x · dy[block of x]
VarList SquareSumGradient(const GradientArgs& a) {
  const Var x = a.input(0);
  const int64_t block = SquareSumBlockRows(x.shape()) * x.shape().cols();
  if (x.shape().elements() == 0) return {x};
  const Var dy = RepeatBlocks(a.grad(0), {x.shape().elements()}, 0, block);
  return {Scale(x * Reshape(dy, x.shape()), 2)};
}

void SquareSumReference(const ReferenceArgs& a) {
  const Shape& shape = a.input_types[0].shape;
  const int64_t block = SquareSumBlockRows(shape) * shape.cols();
  for (size_t e = 0; e < a.inputs[0].size(); ++e) a.outputs[0][e / block] += a.inputs[0][e] * a.inputs[0][e];
}

Cost SquareSumCost(const OpArgs& args) {
  return {.flops = 2.0 * args.inputs[0].shape.elements(), .bytes = static_cast<double>(args.inputs[0].bytes())};
}

constexpr OpExample kSquareSumExamples[] = {
    {.in = "[]", .out = "[1]"},
    {.in = "[130]", .out = "[1]"},
    {.in = "[2,3,5]", .low = -90, .high = 90, .out = "[1]"},
    {.in = "[5,2049]", .out = "[5]"},
    {.in = "[3,5000]", .low = -1e3, .high = 1e3, .out = "[3]"},  // a row is larger than a block
    {.in = "[4100,1]", .out = "[2]"},
    {.in = "[0,3]", .out = "[0]"},
    {.in = "i32[3]", .error = "x must be of floats"},
};

}  // namespace

constexpr OpDef kSumBlocks = {.name = "sum_blocks",
                              .infer = InferSum,
                              .kernels = {SumKernel<float>, SumKernel<double>, SumKernel<BF16>},
                              .cut = Cut::kBoth,
                              .access = SumAccess,
                              .gradient = SumGradient,
                              .reference = SumReference,
                              .autocast = Autocast::kFirst,
                              .cost = CostOf,
                              .attrs = AttrOpsOf<BlockAttrs>(),
                              .examples = kSumExamples};

Var SumBlocks(Var x, int axis, int64_t block) {
  return Record(kSumBlocks, {x}, Attrs::Of(BlockAttrs{.axis = axis, .block = block}));
}

constexpr OpDef kMax = {.name = "max",
                        .infer = InferMax,
                        .kernels = {MaxKernel<float>, MaxKernel<double>},
                        .cut = Cut::kBoth,
                        .access = MaxAccess,
                        .gradient = MaxGradient,
                        .reference = MaxReference,
                        .cost = CostOf,
                        .attrs = AttrOpsOf<AxisAttrs>(),
                        .examples = kMaxExamples};

Var Max(Var x, int axis, bool keep) {
  return Composite("max", {x}, [&] {
    const int from_front = FrontAxis(x.shape(), axis);
    const Var y = Record(kMax, {x}, Attrs::Of(AxisAttrs{.axis = from_front}));
    return keep ? y : Reshape(y, WithoutAxis(x.shape(), from_front));
  });
}

constexpr OpDef kSquareSumBlocks = {.name = "square_sum_blocks",
                                    .infer = InferSquareSum,
                                    .kernels = {SquareSumKernel<float>, SquareSumKernel<double>},
                                    .domain = 0,
                                    .cut = Cut::kRows,
                                    .quantum = SquareSumQuantum,
                                    .access = SquareSumAccess,
                                    .gradient = SquareSumGradient,
                                    .reference = SquareSumReference,
                                    .cost = SquareSumCost,
                                    .examples = kSquareSumExamples};

int64_t SquareSumBlockRows(const Shape& shape) {
  return std::max<int64_t>(1, 4096 / std::max<int64_t>(1, shape.cols()));
}

Var SquareSumBlocks(Var x) { return Record(kSquareSumBlocks, {x}); }

Var SquareSum(Var x) {
  return Composite("square_sum", {x}, [&] { return Sum(SquareSumBlocks(x)); });
}

}  // namespace weft
