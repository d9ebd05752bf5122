// y[..., j] = Σ_k a[..., k] · B[k, j], with B in panels (pack.cc). Operands are f32, or bf16 with a bf16 or f32 result.
#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "weft/core/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/kernels/gemm.h"
#include "weft/ops/ops.h"
#include "weft/ops/product/pack.h"
#include "weft/ops/reduction/blocks.h"

namespace weft {
namespace {

struct PackedMatMulAttrs {
  int64_t cols = 0;
  bool f32_output = false;
  auto Fields() const { return std::tuple{AttrField{"cols", cols}, AttrField{"f32_output", f32_output}}; }
};

absl::StatusOr<Types> Infer(const Attrs& attrs, TypeSpan in) {
  const auto [cols, f32_output] = attrs.as<PackedMatMulAttrs>();
  if (in[0].shape.rank() < 1) return ShapeError("packed_matmul", "a needs rank >= 1", in);
  const DType dtype = in[0].dtype;
  const PanelShape shape = Panels(in[0].shape.dim(-1), cols, dtype);
  const TensorType panels = {dtype, {shape.count(), shape.rows(), shape.width}};
  if (in[1] != panels) {
    return ShapeError("packed_matmul", absl::StrCat("the panels for ", cols, " columns are ", ToString(panels)), in);
  }
  TensorType out = {dtype == kBF16 && f32_output ? kF32 : dtype, in[0].shape};
  out.shape.set_dim(-1, cols);
  return Types{out};
}

// Calls run(column, product) for each product in a tile: one for all panels in bf16, one for each panel in f32.
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

Prepared Prepare(const OpArgs& args, absl::Span<const Rect> tiles) {
  if (args.inputs[0].dtype == kF64) return {};
  auto gemms = std::make_shared<GemmSet>();
  for (const Rect& tile : tiles) {
    ForEachProduct(args.inputs[0], args.outputs[0], tile, [&](int64_t, const GemmShape& shape) { gemms->Add(shape); });
  }
  const size_t workspace = gemms->workspace();
  return {std::move(gemms), workspace};
}

void Kernel(const KernelArgs& args, Rect tile) {
  const GemmSet& gemms = *static_cast<const GemmSet*>(args.prepared);
  const Tensor &a = args.inputs[0], &y = args.outputs[0];
  const int64_t inner = a.type.shape.dim(-1), cols = y.type.shape.cols();
  const int64_t size = static_cast<int64_t>(SizeOf(a.type.dtype)), y_size = static_cast<int64_t>(SizeOf(y.type.dtype));
  const PanelShape panels = Panels(inner, cols, a.type.dtype);
  ForEachProduct(a.type, y.type, tile, [&](int64_t column, const GemmShape& shape) {
    gemms.Run(shape, a.data + tile.row_begin * inner * size, args.inputs[1].data + panels.Offset(0, column) * size,
              y.data + (tile.row_begin * cols + column) * y_size, args.workspace);
  });
}

void KernelF64(const KernelArgs& args, Rect tile) {
  const Tensor &a = args.inputs[0], &y = args.outputs[0];
  const int64_t inner = a.type.shape.dim(-1), cols = y.type.shape.cols();
  const PanelShape panels = Panels(inner, cols, kF64);
  ForEachProduct(a.type, y.type, tile, [&](int64_t column, const GemmShape& shape) {
    PlainGemm(shape, args.input<double>(0) + tile.row_begin * inner, args.input<double>(1) + panels.Offset(0, column),
              args.output<double>(0) + tile.row_begin * cols + column);
  });
}

int64_t Quantum(const OpArgs& args) { return ProductRows(args.outputs[0].shape.rows()); }
int64_t ColumnQuantum(const OpArgs& args) { return ProductColumns(args.outputs[0].shape.cols()); }

Rect Access(const OpArgs& args, int operand, Rect tile) {
  if (operand == 0) return {tile.row_begin, tile.row_end, 0, args.inputs[0].shape.cols()};
  if (operand == 2) return tile;
  const Shape& panels = args.inputs[1].shape;
  const int64_t width = panels.dim(2), rows = panels.dim(1);
  return {tile.col_begin / width * rows, (tile.col_end + width - 1) / width * rows, 0, width};
}

void Reference(const ReferenceArgs& args) {
  const int64_t inner = args.input_types[0].shape.dim(-1), cols = args.output_types[0].shape.cols();
  const PanelShape panels = Panels(inner, cols, args.input_types[1].dtype);
  for (size_t e = 0; e < args.outputs[0].size(); ++e) {
    const int64_t i = e / cols, j = e % cols;
    for (int64_t k = 0; k < inner; ++k) {
      args.outputs[0][e] += args.inputs[0][i * inner + k] * args.inputs[1][panels.Offset(k, j)];
    }
  }
}

Cost CostOf(const OpArgs& args) {
  return {.flops = 2.0 * args.outputs[0].shape.elements() * args.inputs[0].shape.dim(-1), .bytes = OperandBytes(args)};
}

template <bool transposed, bool f32_output>
VarList Example(VarSpan in) {
  const int64_t cols = in[1].dim(transposed ? 0 : 1);
  return {PackedMatMul(in[0], Pack(in[1], transposed, in[0].dtype()), cols, f32_output)};
}

constexpr double kManyTerms = 1e-5;  // for sums of more than a hundred products

constexpr OpExample kExamples[] = {
    {.in = "[1,1] [1,1]", .record = Example<0, 0>, .out = "[1,1]"},
    {.in = "[3,5] [7,5]", .record = Example<1, 0>, .out = "[3,7]"},
    {.in = "f32[2,67,130] f32[130,200]", .record = Example<0, 0>, .out = "f32[2,67,200]", .tolerance = kManyTerms},
    {.in = "f32[67,130] f32[200,130]", .record = Example<1, 0>, .tolerance = kManyTerms},
    {.in = "[33,40] [40,700]", .record = Example<0, 0>, .out = "[33,700]"},  // panels of 384 columns
    {.in = "[33,40] [700,40]", .record = Example<1, 0>, .out = "[33,700]"},
    {.in = "bf16[67,130] f32[200,130]", .record = Example<1, 0>, .out = "bf16[67,200]"},
    {.in = "bf16[2,67,130] f32[130,200]", .record = Example<0, 1>, .out = "f32[2,67,200]", .tolerance = kManyTerms},
    {.in = "f32[0,5] f32[5,7]", .record = Example<0, 0>, .out = "f32[0,7]"},
    {.in = "f32[3,0] f32[0,7]", .record = Example<0, 0>, .out = "f32[3,7]"},  // sums of nothing
    {.in = "f32[] f32[1,1]",
     .record = [](VarSpan in) { return VarList{PackedMatMul(in[0], in[1], 1)}; },
     .error = "a needs rank >= 1"},
    {.in = "f32[3,5] f32[5,7]",
     .record = [](VarSpan in) { return VarList{PackedMatMul(in[0], in[1], 7)}; },
     .error = "the panels for 7 columns are f32[1,5,64]"},
};

}  // namespace

constexpr OpDef kPackedMatmul = {.name = "packed_matmul",
                                 .infer = Infer,
                                 .kernels = {Kernel, KernelF64, Kernel},
                                 .prepare = Prepare,
                                 .cut = Cut::kBoth,
                                 .quantum = Quantum,
                                 .column_quantum = ColumnQuantum,
                                 .access = Access,
                                 .no_gradient = "it is recorded when gradients are there",
                                 .reference = Reference,
                                 .cost = CostOf,
                                 .attrs = AttrOpsOf<PackedMatMulAttrs>(),
                                 .examples = kExamples};

Var PackedMatMul(Var a, Var panels, int64_t cols, bool f32_output) {
  return Record(kPackedMatmul, {a, panels}, Attrs::Of(PackedMatMulAttrs{cols, f32_output}));
}

}  // namespace weft
