// pack stores the right operand of a product, B [K, N] or its transpose, in panels of columns (kernels/product/gemm.h).
// Elements of f32 or bf16 panels are in the order in which products of many rows read them.
//
// packed_matmul computes y[..., j] = Σ_k a[..., k] · B[k, j], with B in panels of a's dtype. If a is bf16, y is bf16 or
// f32.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "weft/base/status.h"
#include "weft/core/block_formats.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/attributes.h"
#include "weft/ops/kernels/product/gemm.h"
#include "weft/ops/kernels/rows/elementwise.h"
#include "weft/ops/ops.h"
#include "weft/ops/product/matmul.h"

namespace weft {
namespace {

// Returns the panels' shape for B [inner, cols]: 64 columns each in bf16, otherwise as many as the smallest tile has.
PanelShape Panels(int64_t inner, int64_t cols, DType dtype) {
  return {.inner = inner, .cols = cols, .width = dtype == kBF16 ? 64 : ProductColumns(cols), .dtype = dtype};
}

struct PackAttrs {
  DType dtype = kF32;
  bool transposed = false;
  auto Fields() const { return std::tuple{AttrField{"dtype", dtype}, AttrField{"transposed", transposed}}; }
};

PanelShape ShapeOf(const Attrs& attrs, const Shape& b) {
  const auto [dtype, transposed] = attrs.as<PackAttrs>();
  return Panels(b.dim(transposed ? 1 : 0), b.dim(transposed ? 0 : 1), dtype);
}

absl::StatusOr<Types> InferPack(const Attrs& attrs, TypeSpan in) {
  const DType dtype = attrs.as<PackAttrs>().dtype;
  const bool converts = (dtype == kF32 || dtype == kBF16) && IsWeightFormat(in[0].dtype);
  if (dtype != in[0].dtype && !converts) {
    return ShapeError("pack", "panels are of b's dtype, or f32 or bf16 for a weight", in);
  }
  if (in[0].shape.rank() != 2) return ShapeError("pack", "b needs rank 2", in);
  if (IsWeightFormat(in[0].dtype) && in[0].dtype != kF32 && !attrs.as<PackAttrs>().transposed) {
    return ShapeError("pack", "a stored weight is transposed: it is kept by rows", in);
  }
  const PanelShape shape = ShapeOf(attrs, in[0].shape);
  return Types{{dtype, {shape.count(), shape.rows(), shape.width}}};
}

int64_t PackQuantum(const OpArgs& args) { return std::max<int64_t>(1, args.outputs[0].shape.dim(1)); }

Rect PackAccess(const OpArgs& args, int operand, Rect tile) {
  if (operand == 1) return tile;
  const PanelShape shape = ShapeOf(args.attrs, args.inputs[0].shape);
  const int64_t first = tile.row_begin / PackQuantum(args) * shape.width;
  const int64_t last = std::min(shape.cols, tile.row_end / PackQuantum(args) * shape.width);
  return args.attrs.as<PackAttrs>().transposed ? Rect{first, last, 0, shape.inner} : Rect{0, shape.inner, first, last};
}

void PackKernel(const KernelArgs& a, Rect tile) {
  const int64_t rows = std::max<int64_t>(1, a.output_shape(0).dim(1));
  PackPanels(ShapeOf(a.attrs, a.input_shape(0)), a.attrs.as<PackAttrs>().transposed, a.input<float>(0),
             tile.row_begin / rows, tile.row_end / rows, a.outputs[0].data);
}

// Elements of a column that are decoded at once: a multiple of the block size of every format.
constexpr int64_t kSlice = 256;

// Reports whether pairs of elements of a stored weight are already words of its panels.
bool StoresWords(DType stored, const PanelShape& panels) {
  return stored == kBF16 && panels.dtype == kBF16 && panels.rows() == panels.inner;
}

size_t PackWorkspace(const OpArgs& args, absl::Span<const Rect>) {
  const PanelShape shape = ShapeOf(args.attrs, args.inputs[0].shape);
  const DType stored = args.inputs[0].dtype;
  if (stored == kF32 || StoresWords(stored, shape)) return 0;
  return static_cast<size_t>(shape.width * std::min(kSlice, shape.inner)) * sizeof(float);
}

// Packs a weight that is stored by rows in bf16 or a block format. A bf16 weight moves to bf16 panels as it is. Of
// other weights, decodes kSlice elements of each column of a panel at a time.
void PackStoredKernel(const KernelArgs& a, Rect tile) {
  const PanelShape whole = ShapeOf(a.attrs, a.input_shape(0));
  const int64_t rows = std::max<int64_t>(1, whole.rows()), inner = whole.inner;
  const DType stored = a.inputs[0].type.dtype;
  if (StoresWords(stored, whole)) {
    return PackTransposedBF16(whole, a.input<BF16>(0), tile.row_begin / rows, tile.row_end / rows, a.outputs[0].data);
  }
  float* const decoded = reinterpret_cast<float*>(a.workspace);
  for (int64_t p = tile.row_begin / rows; p < tile.row_end / rows; ++p) {
    PanelShape panel = whole;
    panel.cols = std::min(whole.width, whole.cols - p * whole.width);
    std::byte* const to = a.outputs[0].data + p * whole.size() * static_cast<int64_t>(SizeOf(whole.dtype));
    for (int64_t k = 0; k < inner; k += kSlice) {
      panel.inner = std::min(kSlice, inner - k);
      for (int64_t j = 0; j < panel.cols; ++j) {
        const std::byte* const from =
            a.inputs[0].data + (p * whole.width + j) * BytesOf(stored, inner) + BytesOf(stored, k);
        DecodeWeight(stored, from, absl::MakeSpan(decoded + j * panel.inner, static_cast<size_t>(panel.inner)));
      }
      PackPanels(panel, /*transposed=*/true, decoded, 0, 1,
                 to + whole.Offset(k, 0) * static_cast<int64_t>(SizeOf(whole.dtype)));
    }
  }
}

void PackReference(const ReferenceArgs& a) {
  const PanelShape shape = ShapeOf(a.attrs, a.input_types[0].shape);
  const bool transposed = a.attrs.as<PackAttrs>().transposed;
  for (int64_t k = 0; k < shape.inner; ++k) {
    for (int64_t j = 0; j < shape.cols; ++j) {
      a.outputs[0][shape.Offset(k, j)] = a.inputs[0][transposed ? j * shape.inner + k : k * shape.cols + j];
    }
  }
}

constexpr OpExample kPackExamples[] = {
    {.in = "f32[5,3]", .record = RecordCall<Pack, false, kF32>, .out = "f32[1,5,64]"},
    {.in = "f32[5,3]", .record = RecordCall<Pack, true, kBF16>, .out = "bf16[1,32,64]"},
    {.in = "f32[100,130]", .record = RecordCall<Pack, false, kF32>},
    {.in = "f32[130,100]", .record = RecordCall<Pack, true, kF32>},
    {.in = "f32[100,130]", .record = RecordCall<Pack, false, kBF16>},
    {.in = "f32[130,100]", .record = RecordCall<Pack, true, kBF16>},
    {.in = "f32[0,3]", .record = RecordCall<Pack, false, kF32>, .out = "f32[1,0,64]"},
    {.in = "f32[3]", .record = RecordCall<Pack, false, kF32>, .error = "b needs rank 2"},
    {.in = "f32[3,5]", .record = RecordCall<Pack, false, kF64>, .error = "panels are of b's dtype"},
    {.in = "bf16[130,96]", .record = RecordCall<Pack, false, kF32>, .error = "a stored weight is transposed"},
    {.in = "f32[300,100]", .record = RecordCall<Pack, true, kF32>},
    {.in = "bf16[130,100]", .record = RecordCall<Pack, true, kBF16>},
    {.in = "bf16[130,96]", .record = RecordCall<Pack, true, kBF16>},  // moves words
    {.in = "bf16[130,100]", .record = RecordCall<Pack, true, kF32>},
    {.in = "i32[3,5]", .record = RecordCall<Pack, false, kI32>, .error = "not defined for i32"},
};

struct PackedMatMulAttrs {
  int64_t cols = 0;
  bool f32_output = false;
  auto Fields() const { return std::tuple{AttrField{"cols", cols}, AttrField{"f32_output", f32_output}}; }
};

absl::StatusOr<Types> InferProduct(const Attrs& attrs, TypeSpan in) {
  const auto [cols, f32_output] = attrs.as<PackedMatMulAttrs>();
  if (in[0].shape.rank() < 1) return ShapeError("packed_matmul", "a needs rank >= 1", in);
  const DType dtype = in[0].dtype;
  const PanelShape shape = Panels(in[0].shape.dim(-1), cols, dtype);
  const TensorType panels = {dtype, {shape.count(), shape.rows(), shape.width}};
  if (in[1] != panels) {
    return ShapeError("packed_matmul", absl::StrCat("the panels for ", cols, " columns are ", ToString(panels)), in);
  }
  return Types{{dtype == kBF16 && f32_output ? kF32 : dtype, WithDim(in[0].shape, -1, cols)}};
}

// Calls run(first column, product) for each product of a tile: in bf16 one for all its panels, otherwise one per panel.
template <class Run>
void ForEachProduct(const TensorType& a, const TensorType& y, Rect tile, Run run) {
  const int64_t inner = a.shape.dim(-1), cols = y.shape.cols();
  const int64_t width = a.dtype == kBF16 ? std::max<int64_t>(1, tile.cols()) : Panels(inner, cols, a.dtype).width;
  for (int64_t column = tile.col_begin; column < tile.col_end; column += width) {
    run(column, GemmShape{.rows = tile.rows(),
                          .cols = std::min(width, tile.col_end - column),
                          .inner = inner,
                          .a_stride = inner,
                          .b_stride = width,
                          .c_stride = cols,
                          .packed_b = a.dtype == kBF16,
                          .in = a.dtype,
                          .out = y.dtype});
  }
}

size_t Workspace(const OpArgs& args, absl::Span<const Rect> tiles) {
  size_t bytes = 0;
  for (const Rect& tile : tiles) {
    ForEachProduct(args.inputs[0], args.outputs[0], tile,
                   [&](int64_t, const GemmShape& shape) { bytes = std::max(bytes, GemmWorkspace(shape)); });
  }
  return bytes;
}

std::pair<int64_t, int64_t> Unit(const OpArgs& args) {
  return {kProductUnitRows,
          Panels(args.inputs[0].shape.dim(-1), args.outputs[0].shape.cols(), args.inputs[0].dtype).width};
}

void ProductKernel(const KernelArgs& args, Rect tile) {
  const Tensor &a = args.inputs[0], &y = args.outputs[0];
  const int64_t inner = a.type.shape.dim(-1), cols = y.type.shape.cols();
  const int64_t size = static_cast<int64_t>(SizeOf(a.type.dtype)), y_size = static_cast<int64_t>(SizeOf(y.type.dtype));
  const PanelShape panels = Panels(inner, cols, a.type.dtype);
  ForEachProduct(a.type, y.type, tile, [&](int64_t column, const GemmShape& shape) {
    Gemm(shape, a.data + tile.row_begin * inner * size, args.inputs[1].data + panels.Offset(0, column) * size,
         y.data + (tile.row_begin * cols + column) * y_size, args.workspace);
  });
}

int64_t ProductQuantum(const OpArgs& args) { return ProductRows(args.outputs[0].shape.rows()); }
int64_t ColumnQuantum(const OpArgs& args) { return ProductColumns(args.outputs[0].shape.cols()); }

Rect ProductAccess(const OpArgs& args, int operand, Rect tile) {
  if (operand == 0) return {tile.row_begin, tile.row_end, 0, args.inputs[0].shape.cols()};
  if (operand == 2) return tile;
  const Shape& panels = args.inputs[1].shape;
  const int64_t width = panels.dim(2), rows = panels.dim(1);
  return {tile.col_begin / width * rows, (tile.col_end + width - 1) / width * rows, 0, width};
}

void ProductReference(const ReferenceArgs& args) {
  const int64_t inner = args.input_types[0].shape.dim(-1), cols = args.output_types[0].shape.cols();
  const PanelShape panels = Panels(inner, cols, args.input_types[1].dtype);
  for (size_t e = 0; e < args.outputs[0].size(); ++e) {
    const int64_t i = e / cols, j = e % cols;
    for (int64_t k = 0; k < inner; ++k) {
      args.outputs[0][e] += args.inputs[0][i * inner + k] * args.inputs[1][panels.Offset(k, j)];
    }
  }
}

template <bool transposed, bool f32_output>
VarList ProductExample(VarSpan in) {
  const int64_t cols = in[1].dim(transposed ? 0 : 1);
  return {PackedMatMul(in[0], Pack(in[1], transposed, in[0].dtype()), cols, f32_output)};
}

constexpr OpExample kProductExamples[] = {
    {.in = "f32[1,1] f32[1,1]", .record = ProductExample<0, 0>, .out = "f32[1,1]"},
    {.in = "f32[3,5] f32[7,5]", .record = ProductExample<1, 0>, .out = "f32[3,7]"},
    {.in = "f32[2,67,130] f32[130,200]",
     .record = ProductExample<0, 0>,
     .out = "f32[2,67,200]",
     .tolerance = kSumTolerance},
    {.in = "f32[67,130] f32[200,130]", .record = ProductExample<1, 0>, .tolerance = kSumTolerance},
    {.in = "f32[33,40] f32[40,700]", .record = ProductExample<0, 0>, .out = "f32[33,700]"},  // panels of 384 columns
    {.in = "f32[33,40] f32[700,40]", .record = ProductExample<1, 0>, .out = "f32[33,700]"},
    {.in = "bf16[67,130] f32[200,130]", .record = ProductExample<1, 0>, .out = "bf16[67,200]"},
    {.in = "bf16[2,67,130] f32[130,200]",
     .record = ProductExample<0, 1>,
     .out = "f32[2,67,200]",
     .tolerance = kSumTolerance},
    {.in = "f32[0,5] f32[5,7]", .record = ProductExample<0, 0>, .out = "f32[0,7]"},
    {.in = "f32[3,0] f32[0,7]", .record = ProductExample<0, 0>, .out = "f32[3,7]"},  // sums of nothing
    {.in = "f32[] f32[1,1]", .record = RecordCall<PackedMatMul, 1, false>, .error = "a needs rank >= 1"},
    {.in = "f32[3,5] f32[5,7]",
     .record = RecordCall<PackedMatMul, 7, false>,
     .error = "the panels for 7 columns are f32[1,5,64]"},
};

}  // namespace

constexpr OpDef kPack = {.name = "pack",
                         .infer = InferPack,
                         .kernels = WithStoredWeights({PackKernel, nullptr, PackStoredKernel}, PackStoredKernel),
                         .workspace = PackWorkspace,
                         .cut = Cut::kRows,
                         .quantum = PackQuantum,
                         .access = PackAccess,
                         .no_gradient = "it is recorded after gradients are expanded",
                         .reference = PackReference,
                         .attrs = AttrOpsOf<PackAttrs>(),
                         .examples = kPackExamples};

Var Pack(Var b, bool transposed, DType dtype) { return Record(kPack, {b}, Attrs::Of(PackAttrs{dtype, transposed})); }

constexpr OpDef kPackedMatmul = {.name = "packed_matmul",
                                 .infer = InferProduct,
                                 .kernels = {ProductKernel, nullptr, ProductKernel},
                                 .workspace = Workspace,
                                 .unit = Unit,
                                 .cut = Cut::kBoth,
                                 .quantum = ProductQuantum,
                                 .column_quantum = ColumnQuantum,
                                 .access = ProductAccess,
                                 .no_gradient = "it is recorded after gradients are expanded",
                                 .reference = ProductReference,
                                 .cost = ProductCost,
                                 .attrs = AttrOpsOf<PackedMatMulAttrs>(),
                                 .examples = kProductExamples};

Var PackedMatMul(Var a, Var panels, int64_t cols, bool f32_output) {
  return Record(kPackedMatmul, {a, panels}, Attrs::Of(PackedMatMulAttrs{cols, f32_output}));
}

}  // namespace weft
