// y[j] = Σ x² over block j, [blocks]. A block is max(1, 4096 / cols) whole rows.
#include <algorithm>

#include "weft/core/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/kernels/rows.h"
#include "weft/ops/ops.h"
#include "weft/ops/reduction/blocks.h"

namespace weft {
namespace {

int64_t BlockRows(const Shape& shape) { return std::max<int64_t>(1, 4096 / std::max<int64_t>(1, shape.cols())); }

absl::StatusOr<Types> Infer(const Attrs&, TypeSpan in) {
  if (!IsFloat(in[0].dtype)) return ShapeError("square_sum_blocks", "x must be of floats", in);
  return Types{{in[0].dtype, {BlockCount(in[0].shape.rows(), BlockRows(in[0].shape))}}};
}

int64_t Quantum(const OpArgs& args) { return BlockRows(args.inputs[0].shape); }

Rect Access(const OpArgs& args, int operand, Rect tile) {
  if (operand == 0) return tile;
  const int64_t rows = BlockRows(args.inputs[0].shape);
  return {0, 1, tile.row_begin / rows, BlockCount(tile.row_end, rows)};
}

template <class T>
void Kernel(const KernelArgs& a, Rect tile) {
  const Shape& shape = a.input_shape(0);
  const int64_t rows = BlockRows(shape), cols = shape.cols();
  for (int64_t begin = tile.row_begin; begin < tile.row_end; begin += rows) {
    const int64_t count = std::min(rows, tile.row_end - begin) * cols;
    a.output<T>(0)[begin / rows] = Rows<T>().square_sum(a.input<T>(0) + begin * cols, count);
  }
}

// dx = 2 · x · dy[block of x]
VarList Gradient(const GradientArgs& a) {
  const Var x = a.input(0);
  const int64_t block = BlockRows(x.shape()) * x.shape().cols();
  if (x.shape().elements() == 0) return {x};
  const Var dy = RepeatBlocks(a.grad(0), {x.shape().elements()}, 0, block);
  return {Scale(x * Reshape(dy, x.shape()), 2)};
}

void Reference(const ReferenceArgs& a) {
  const Shape& shape = a.input_types[0].shape;
  const int64_t block = BlockRows(shape) * shape.cols();
  for (size_t e = 0; e < a.inputs[0].size(); ++e) a.outputs[0][e / block] += a.inputs[0][e] * a.inputs[0][e];
}

Cost CostOf(const OpArgs& args) {
  return {.flops = 2.0 * args.inputs[0].shape.elements(), .bytes = static_cast<double>(args.inputs[0].bytes())};
}

constexpr OpExample kExamples[] = {
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

constexpr OpDef kSquareSumBlocks = {.name = "square_sum_blocks",
                                    .infer = Infer,
                                    .kernels = {Kernel<float>, Kernel<double>},
                                    .domain = 0,
                                    .cut = Cut::kRows,
                                    .quantum = Quantum,
                                    .access = Access,
                                    .gradient = Gradient,
                                    .reference = Reference,
                                    .cost = CostOf,
                                    .examples = kExamples};

Var SquareSum(Var x) {
  return Composite("square_sum", {x}, [&] { return Sum(Record(kSquareSumBlocks, {x})); });
}

}  // namespace weft
