// matmul computes y[..., i, j] = Σ_k a[..., i, k] · b[..., k, j]. matmul_add adds the product to a third input, of y's
// type, which is not bf16.
//
// Leading axes broadcast. The last two axes of either operand may be stored transposed. ops/kernels/product/gemm.h
// computes f32 and bf16, and plain loops compute f64.
#include "weft/ops/product/matmul.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "weft/base/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/attributes.h"
#include "weft/ops/kernels/product/gemm.h"
#include "weft/ops/kernels/rows/elementwise.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

Shape Leading(const Shape& shape) { return Shape(shape.dims().first(shape.rank() - 2)); }

absl::StatusOr<Types> Infer(const Attrs& attrs, TypeSpan in) {
  const auto [transpose_a, transpose_b, f32_output] = attrs.as<MatMulAttrs>();
  const Shape &a = in[0].shape, &b = in[1].shape;
  if (a.rank() < 2 || b.rank() < 2) return ShapeError("matmul", "both inputs need rank >= 2", in);
  if (in[0].dtype != in[1].dtype) return ShapeError("matmul", "the inputs' dtypes differ", in);
  const int64_t a_inner = a.dim(transpose_a ? -2 : -1), b_inner = b.dim(transpose_b ? -1 : -2);
  if (a_inner != b_inner) {
    return ShapeError("matmul", absl::StrCat("inner dimensions differ, ", a_inner, " vs ", b_inner), in);
  }
  std::optional<Shape> shape = Broadcast(Leading(a), Leading(b));
  if (!shape) return ShapeError("matmul", "leading axes don't broadcast", in);
  shape->Append(a.dim(transpose_a ? -1 : -2));
  shape->Append(b.dim(transpose_b ? -2 : -1));
  return Types{{in[0].dtype == kBF16 && f32_output ? kF32 : in[0].dtype, *shape}};
}

absl::StatusOr<Types> InferAdd(const Attrs& attrs, TypeSpan in) {
  WEFT_ASSIGN_OR_RETURN(const Types types, Infer(attrs, in.first(2)));
  if (in[2] == types[0] && in[2].dtype != kBF16) return types;
  if (types[0].dtype == kBF16) return ShapeError("matmul_add", "the sum must be f32: set f32_output", in);
  return ShapeError("matmul_add", absl::StrCat("c must be ", ToString(types[0])), in);
}

// Describes the operands in memory: y is `batch` matrices [rows, cols]. If all of them use one b, and a is neither
// transposed nor broadcast, the leading axes of a count as rows, and `batch` is 1.
struct Layout {
  static constexpr int64_t kIrregular = -1;

  bool transpose_a, transpose_b;
  int64_t batch, rows, cols, inner;
  // Elements from the operand of one matrix of y to the operand of the next: 0 if all use the same one; kIrregular if
  // an operand broadcasts along only some of its leading axes.
  int64_t a_batch_stride, b_batch_stride;
  bool accumulate;

  Layout(const Attrs& attrs, const Shape& a, const Shape& b, const Shape& y, bool add)
      : transpose_a(attrs.as<MatMulAttrs>().transpose_a),
        transpose_b(attrs.as<MatMulAttrs>().transpose_b),
        batch(y.Product(0, y.rank() - 2)),
        rows(y.dim(-2)),
        cols(y.dim(-1)),
        inner(a.dim(transpose_a ? -2 : -1)),
        accumulate(add) {
    const int64_t a_count = a.Product(0, a.rank() - 2), b_count = b.Product(0, b.rank() - 2);
    const auto stride = [&](int64_t count, int64_t size) {
      return count == 1 ? 0 : count == batch ? size : kIrregular;
    };
    a_batch_stride = stride(a_count, rows * inner);
    b_batch_stride = stride(b_count, inner * cols);
    if (b_count == 1 && !transpose_a && a_count == batch) {
      rows *= batch;
      batch = 1;
      a_batch_stride = 0;
    }
  }

  explicit Layout(const OpArgs& args)
      : Layout(args.attrs, args.inputs[0].shape, args.inputs[1].shape, args.outputs[0].shape, args.inputs.size() == 3) {
  }

  bool irregular() const { return a_batch_stride == kIrregular || b_batch_stride == kIrregular; }

  // Returns the product that computes `tile` of y, or one matrix of `tile` if a batch stride is irregular. The caller
  // sets the dtypes.
  GemmShape Of(Rect tile) const {
    GemmShape shape = {.rows = batch == 1 ? tile.rows() : rows,
                       .cols = tile.cols(),
                       .inner = inner,
                       .a_stride = transpose_a ? rows : inner,
                       .b_stride = transpose_b ? inner : cols,
                       .c_stride = cols,
                       .c_batch_stride = rows * cols,
                       .transpose_a = transpose_a,
                       .transpose_b = transpose_b,
                       .accumulate = accumulate};
    if (batch == 1 || irregular()) return shape;
    shape.batch = rows == 0 ? 0 : tile.rows() / rows;
    shape.a_batch_stride = a_batch_stride;
    shape.b_batch_stride = b_batch_stride;
    return shape;
  }
};

// Matrix `index` of y uses one matrix of `operand`. Returns the offset of that matrix, in elements. `size`: number of
// elements of a matrix of `operand`.
int64_t MatrixOffset(const Shape& operand, const Shape& y, int64_t index, int64_t size) {
  return size * BroadcastOffset(Leading(y), Leading(operand), index);
}

// For matmul_add, copies the third input to the output, to which the product is added, unless both share their bytes.
void CopyAddend(const KernelArgs& args, Rect tile) {
  if (args.inputs.size() < 3 || args.inputs[2].data == args.outputs[0].data) return;
  const size_t size = SizeOf(args.outputs[0].type.dtype), row = size * args.output_shape(0).cols();
  for (int64_t r = tile.row_begin; r < tile.row_end; ++r) {
    const size_t offset = r * row + tile.col_begin * size;
    std::memcpy(args.outputs[0].data + offset, args.inputs[2].data + offset, tile.cols() * size);
  }
}

// Calls run(a, b, c, shape) for each product in `tile`. a, b and c are offsets in the operands and y, in elements.
template <class Run>
void ForEachProduct(const KernelArgs& args, Rect tile, Run run) {
  const Shape &a = args.input_shape(0), &b = args.input_shape(1), &y = args.output_shape(0);
  const Layout layout(args.attrs, a, b, y, args.inputs.size() == 3);
  const GemmShape shape = layout.Of(tile);
  const int64_t a_row = layout.transpose_a ? 1 : layout.inner;
  const int64_t b_col = tile.col_begin * (layout.transpose_b ? layout.inner : 1);
  if (layout.batch == 1) {
    run(tile.row_begin * a_row, b_col, tile.row_begin * layout.cols + tile.col_begin, shape);
    return;
  }
  if (tile.rows() == 0) return;
  const int64_t begin = tile.row_begin / layout.rows, end = tile.row_end / layout.rows;
  if (!layout.irregular()) {
    run(begin * layout.a_batch_stride, begin * layout.b_batch_stride + b_col,
        begin * shape.c_batch_stride + tile.col_begin, shape);
    return;
  }
  for (int64_t i = begin; i < end; ++i) {
    run(MatrixOffset(a, y, i, layout.rows * layout.inner), MatrixOffset(b, y, i, layout.inner * layout.cols) + b_col,
        i * shape.c_batch_stride + tile.col_begin, shape);
  }
}

GemmShape WithTypes(GemmShape shape, DType in, DType out) {
  shape.in = in;
  shape.out = out;
  return shape;
}

size_t Workspace(const OpArgs& args, absl::Span<const Rect> tiles) {
  const DType in = args.inputs[0].dtype, out = args.outputs[0].dtype;
  if (in == kF64) return 0;
  const Layout layout(args);
  size_t bytes = 0;
  for (const Rect& tile : tiles) bytes = std::max(bytes, GemmWorkspace(WithTypes(layout.Of(tile), in, out)));
  return bytes;
}

void Kernel(const KernelArgs& args, Rect tile) {
  CopyAddend(args, tile);
  const DType in = args.inputs[0].type.dtype, out = args.outputs[0].type.dtype;
  const int64_t size = static_cast<int64_t>(SizeOf(in));
  ForEachProduct(args, tile, [&](int64_t a, int64_t b, int64_t c, const GemmShape& shape) {
    Gemm(WithTypes(shape, in, out), args.inputs[0].data + a * size, args.inputs[1].data + b * size,
         args.outputs[0].data + c * static_cast<int64_t>(SizeOf(out)), args.workspace);
  });
}

void KernelF64(const KernelArgs& args, Rect tile) {
  CopyAddend(args, tile);
  ForEachProduct(args, tile, [&](int64_t a, int64_t b, int64_t c, const GemmShape& shape) {
    PlainGemm(shape, args.input<double>(0) + a, args.input<double>(1) + b, args.output<double>(0) + c);
  });
}

// In a batch, a tile holds all rows of each matrix. A transposed B is brought into another order for each tile, so
// tiles have more rows and fewer columns.
bool HasTransposedB(const OpArgs& args) { return args.attrs.as<MatMulAttrs>().transpose_b; }
int64_t Quantum(const OpArgs& args) {
  const Layout layout(args);
  if (layout.batch > 1) return std::max<int64_t>(1, layout.rows);
  return HasTransposedB(args) ? ProductRows(layout.rows, kProductTileRows) : ProductRows(layout.rows);
}
int64_t ColumnQuantum(const OpArgs& args) {
  const int64_t cols = args.outputs[0].shape.cols();
  return HasTransposedB(args) ? ProductColumns(cols, 128) : ProductColumns(cols);
}

std::pair<int64_t, int64_t> Unit(const OpArgs& args) {
  return {Layout(args).batch > 1 ? Quantum(args) : kProductUnitRows, kProductUnitCols};
}

Rect Access(const OpArgs& args, int operand, Rect tile) {
  if (operand >= 2) return tile;
  const Layout layout(args);
  Rect rect = WholeRect(args.inputs[operand].shape);
  if (layout.batch == 1) {
    if (operand == 0 && layout.transpose_a) return {rect.row_begin, rect.row_end, tile.row_begin, tile.row_end};
    if (operand == 0) return {tile.row_begin, tile.row_end, rect.col_begin, rect.col_end};
    if (layout.transpose_b) return {tile.col_begin, tile.col_end, rect.col_begin, rect.col_end};
    return {rect.row_begin, rect.row_end, tile.col_begin, tile.col_end};
  }
  const int64_t stride = operand == 0 ? layout.a_batch_stride : layout.b_batch_stride;
  if (stride <= 0 || layout.rows == 0) return rect;
  const int64_t stored_rows = args.inputs[operand].shape.dim(-2);
  rect.row_begin = tile.row_begin / layout.rows * stored_rows;
  rect.row_end = (tile.row_end + layout.rows - 1) / layout.rows * stored_rows;
  return rect;
}

// These are the gradients by A and B as stored. They are then summed over the leading axes that were broadcast:
//   A · B: dA = dY Bᵀ, dB = Aᵀ dY.    A · Bᵀ: dA = dY B, dB = dYᵀ A.
//   Aᵀ · B: dA = B dYᵀ, dB = A dY.    Aᵀ · Bᵀ: dA = Bᵀ dYᵀ, dB = dYᵀ Aᵀ.
VarList Gradient(const GradientArgs& args) {
  const auto [transpose_a, transpose_b, f32_output] = args.attrs.as<MatMulAttrs>();
  Var a = args.input(0), b = args.input(1), dy = Cast(args.grad(0), a.dtype());
  const Shape a_shape = a.shape();
  if (b.shape().rank() == 2 && !transpose_a) {  // one product of the rows of all leading axes
    a = Reshape(a, {a_shape.rows(), a_shape.cols()});
    dy = Reshape(dy, {dy.shape().rows(), dy.shape().cols()});
  }
  const Var da = transpose_a ? MatMul(b, dy, {.transpose_a = transpose_b, .transpose_b = true})
                             : MatMul(dy, b, {.transpose_b = !transpose_b});
  const Var db = transpose_b ? MatMul(dy, a, {.transpose_a = true, .transpose_b = transpose_a})
                             : MatMul(a, dy, {.transpose_a = !transpose_a});
  return {Reshape(SumTo(da, a.shape()), a_shape), SumTo(db, b.shape())};
}

// The gradients of a and b are the product's; dC = dY.
VarList GradientAdd(const GradientArgs& args) {
  VarList gradients = Gradient(args);
  gradients.push_back(args.grad(0));
  return gradients;
}

void Reference(const ReferenceArgs& args) {
  const auto [transpose_a, transpose_b, f32_output] = args.attrs.as<MatMulAttrs>();
  const Shape &a = args.input_types[0].shape, &b = args.input_types[1].shape, &y = args.output_types[0].shape;
  const int64_t rows = y.dim(-2), cols = y.dim(-1), inner = a.dim(transpose_a ? -2 : -1);
  for (size_t e = 0; e < args.outputs[0].size(); ++e) {
    const int64_t matrix = e / (rows * cols), i = e / cols % rows, j = e % cols;
    const double* const a_matrix = args.inputs[0].data() + MatrixOffset(a, y, matrix, rows * inner);
    const double* const b_matrix = args.inputs[1].data() + MatrixOffset(b, y, matrix, inner * cols);
    if (args.inputs.size() == 3) args.outputs[0][e] = args.inputs[2][e];
    for (int64_t k = 0; k < inner; ++k) {
      args.outputs[0][e] +=
          a_matrix[transpose_a ? k * rows + i : i * inner + k] * b_matrix[transpose_b ? j * inner + k : k * cols + j];
    }
  }
}

Cost CostOf(const OpArgs& args) {
  const Layout layout(args);
  return {.flops = 2.0 * layout.batch * layout.rows * layout.cols * layout.inner, .bytes = OperandBytes(args)};
}

constexpr MatMulAttrs kPlain = {}, kTransposeA = {.transpose_a = true}, kTransposeB = {.transpose_b = true};
constexpr MatMulAttrs kTransposeBoth = {.transpose_a = true, .transpose_b = true};
constexpr MatMulAttrs kF32Output = {.transpose_b = true, .f32_output = true};

constexpr OpExample kExamples[] = {
    {.in = "[1,1] [1,1]", .record = RecordWith<kMatmul, kPlain>, .out = "[1,1]"},
    {.in = "[3,5] [5,7]", .record = RecordWith<kMatmul, kPlain>, .out = "[3,7]"},
    {.in = "[3,5] [7,5]", .record = RecordWith<kMatmul, kTransposeB>, .out = "[3,7]"},
    {.in = "[5,3] [5,7]", .record = RecordWith<kMatmul, kTransposeA>, .out = "[3,7]"},
    {.in = "[5,3] [7,5]", .record = RecordWith<kMatmul, kTransposeBoth>, .out = "[3,7]"},
    {.in = "[67,130] [130,33]", .record = RecordWith<kMatmul, kPlain>, .tolerance = kSumTolerance},
    {.in = "[67,130] [33,130]", .record = RecordWith<kMatmul, kTransposeB>, .tolerance = kSumTolerance},
    {.in = "[130,67] [130,33]", .record = RecordWith<kMatmul, kTransposeA>, .tolerance = kSumTolerance},
    {.in = "[130,67] [33,130]", .record = RecordWith<kMatmul, kTransposeBoth>, .tolerance = kSumTolerance},
    {.in = "[1,17] [17,1]", .record = RecordWith<kMatmul, kPlain>, .out = "[1,1]"},
    {.in = "[2,3,5] [5,7]", .record = RecordWith<kMatmul, kPlain>, .out = "[2,3,7]"},  // leading axes are rows
    {.in = "[2,3,5] [7,5]", .record = RecordWith<kMatmul, kTransposeB>, .out = "[2,3,7]"},
    {.in = "[2,5,3] [5,7]",
     .record = RecordWith<kMatmul, kTransposeA>,
     .out = "[2,3,7]"},  // one b for a batch of transposed a
    {.in = "[2,5,3] [7,5]", .record = RecordWith<kMatmul, kTransposeBoth>, .out = "[2,3,7]"},
    {.in = "[3,5] [2,5,7]", .record = RecordWith<kMatmul, kPlain>, .out = "[2,3,7]"},  // one a
    {.in = "[5,3] [2,7,5]", .record = RecordWith<kMatmul, kTransposeBoth>, .out = "[2,3,7]"},
    {.in = "[2,4,3,5] [2,4,5,7]", .record = RecordWith<kMatmul, kPlain>, .out = "[2,4,3,7]"},
    {.in = "[2,4,3,5] [2,4,7,5]", .record = RecordWith<kMatmul, kTransposeB>, .out = "[2,4,3,7]"},
    {.in = "[2,4,5,3] [2,4,5,7]", .record = RecordWith<kMatmul, kTransposeA>, .out = "[2,4,3,7]"},
    {.in = "[2,4,5,3] [2,4,7,5]", .record = RecordWith<kMatmul, kTransposeBoth>, .out = "[2,4,3,7]"},
    {.in = "[2,1,3,5] [4,5,7]", .record = RecordWith<kMatmul, kPlain>, .out = "[2,4,3,7]"},  // both broadcast
    {.in = "[2,1,5,3] [2,4,7,5]", .record = RecordWith<kMatmul, kTransposeBoth>, .out = "[2,4,3,7]"},
    {.in = "[3,0] [0,7]", .record = RecordWith<kMatmul, kPlain>, .out = "[3,7]"},  // sums of nothing
    {.in = "[0,5] [5,7]", .record = RecordWith<kMatmul, kPlain>, .out = "[0,7]"},
    {.in = "[2,0,3] [2,0,7]", .record = RecordWith<kMatmul, kTransposeA>, .out = "[2,3,7]"},
    {.in = "bf16[3,5] bf16[7,5]", .record = RecordWith<kMatmul, kF32Output>, .out = "f32[3,7]"},
    {.in = "bf16[2,67,130] bf16[33,130]", .record = RecordWith<kMatmul, kF32Output>, .tolerance = kSumTolerance},
    {.in = "bf16[2,4,3,5] bf16[2,4,7,5]", .record = RecordWith<kMatmul, kF32Output>, .out = "f32[2,4,3,7]"},
    {.in = "bf16[3,0] bf16[7,0]", .record = RecordWith<kMatmul, kF32Output>, .out = "f32[3,7]"},
    {.in = "f32[3,5] f32[7,5]", .record = RecordWith<kMatmul, kF32Output>, .out = "f32[3,7]"},
    {.in = "[8,768] [512,64]", .record = RecordWith<kMatmul, kPlain>, .error = "inner dimensions differ, 768 vs 512"},
    {.in = "[5] [5,7]", .record = RecordWith<kMatmul, kPlain>, .error = "both inputs need rank >= 2"},
    {.in = "[2,3,5] [4,5,7]", .record = RecordWith<kMatmul, kPlain>, .error = "leading axes don't broadcast"},
    {.in = "f32[3,5] f64[5,7]", .record = RecordWith<kMatmul, kPlain>, .error = "dtypes differ"},
    {.in = "i32[3,5] i32[5,7]", .record = RecordWith<kMatmul, kPlain>, .error = "not defined for i32"},
};

constexpr OpExample kAddExamples[] = {
    {.in = "[1,1] [1,1] [1,1]", .record = RecordWith<kMatmulAdd, kPlain>, .out = "[1,1]"},
    {.in = "[70,37] [37,200] [70,200]", .record = RecordWith<kMatmulAdd, kPlain>},
    {.in = "[67,130] [33,130] [67,33]", .record = RecordWith<kMatmulAdd, kTransposeB>, .tolerance = kSumTolerance},
    {.in = "[37,70] [37,200] [70,200]", .record = RecordWith<kMatmulAdd, kTransposeA>},
    {.in = "[2,3,5] [2,5,7] [2,3,7]", .record = RecordWith<kMatmulAdd, kPlain>},
    {.in = "[2,1,3,5] [4,5,7] [2,4,3,7]", .record = RecordWith<kMatmulAdd, kPlain>},  // both broadcast
    {.in = "[3,0] [0,7] [3,7]", .record = RecordWith<kMatmulAdd, kPlain>},            // sums of nothing
    {.in = "bf16[70,37] bf16[200,37] f32[70,200]", .record = RecordWith<kMatmulAdd, kF32Output>},
    {.in = "bf16[2,3,5] bf16[2,7,5] f32[2,3,7]", .record = RecordWith<kMatmulAdd, kF32Output>},
    {.in = "[3,5] [5,7] [7]", .record = RecordWith<kMatmulAdd, kPlain>, .error = "c must be f32[3,7]"},
    {.in = "bf16[3,5] bf16[5,7] bf16[3,7]",
     .record = RecordWith<kMatmulAdd, kPlain>,
     .error = "the sum must be f32: set f32_output"},
};

Attrs AttrsOf(const MatMulOptions& options) {
  return Attrs::Of(MatMulAttrs{
      .transpose_a = options.transpose_a, .transpose_b = options.transpose_b, .f32_output = options.f32_output});
}

// Fills in the fields that both ops share.
constexpr OpDef Product(OpDef op) {
  op.kernels = {Kernel, KernelF64, Kernel};
  op.workspace = Workspace;
  op.unit = Unit;
  op.cut = Cut::kBoth;
  op.quantum = Quantum;
  op.column_quantum = ColumnQuantum;
  op.access = Access;
  op.reference = Reference;
  op.cost = CostOf;
  op.attrs = AttrOpsOf<MatMulAttrs>();
  return op;
}

}  // namespace

constexpr OpDef kMatmul = Product(
    {.name = "matmul", .infer = Infer, .gradient = Gradient, .autocast = Autocast::kProduct, .examples = kExamples});
Var MatMul(Var a, Var b, MatMulOptions options) { return Record(kMatmul, {a, b}, AttrsOf(options)); }

constexpr OpDef kMatmulAdd = Product(
    {.name = "matmul_add", .infer = InferAdd, .in_place = 2, .gradient = GradientAdd, .examples = kAddExamples});
Var MatMulAdd(Var a, Var b, Var c, MatMulOptions options) {
  return Composite("matmul_add", {a, b, c}, [&] { return Record(kMatmulAdd, {a, b, c}, AttrsOf(options)); });
}

}  // namespace weft
