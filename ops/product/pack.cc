// Lays out the right operand of a product, B [K, N] or its transpose, in panels of columns (kernels/pack.h).
//
// Panels are f32 or bf16. Their elements are in the order in which products of many rows read them.
#include "weft/ops/product/pack.h"

#include <algorithm>

#include "weft/core/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/kernels/gemm.h"
#include "weft/ops/kernels/pack.h"
#include "weft/ops/ops.h"
#include "weft/ops/product/matmul.h"

namespace weft {

PanelShape Panels(int64_t inner, int64_t cols, DType dtype) {
  return {.inner = inner, .cols = cols, .width = dtype == kBF16 ? 64 : ProductColumns(cols), .dtype = dtype};
}

namespace {

struct PackAttrs {
  DType dtype = kF32;
  bool transposed = false;
  auto Fields() const { return std::tuple{AttrField{"dtype", dtype}, AttrField{"transposed", transposed}}; }
};

PanelShape ShapeOf(const Attrs& attrs, const Shape& b) {
  const auto [dtype, transposed] = attrs.as<PackAttrs>();
  return Panels(b.dim(transposed ? 1 : 0), b.dim(transposed ? 0 : 1), dtype);
}

absl::StatusOr<Types> Infer(const Attrs& attrs, TypeSpan in) {
  const DType dtype = attrs.as<PackAttrs>().dtype;
  const bool rounds = in[0].dtype == kF32 && dtype == kBF16;
  if (dtype != in[0].dtype && !rounds) return ShapeError("pack", "panels are of b's dtype, or of f32 in bf16", in);
  if (in[0].shape.rank() != 2) return ShapeError("pack", "b needs rank 2", in);
  const PanelShape shape = ShapeOf(attrs, in[0].shape);
  return Types{{dtype, {shape.count(), shape.rows(), shape.width}}};
}

int64_t Quantum(const OpArgs& args) { return std::max<int64_t>(1, args.outputs[0].shape.dim(1)); }

Rect Access(const OpArgs& args, int operand, Rect tile) {
  if (operand == 1) return tile;
  const PanelShape shape = ShapeOf(args.attrs, args.inputs[0].shape);
  const int64_t first = tile.row_begin / Quantum(args) * shape.width;
  const int64_t last = std::min(shape.cols, tile.row_end / Quantum(args) * shape.width);
  return args.attrs.as<PackAttrs>().transposed ? Rect{first, last, 0, shape.inner} : Rect{0, shape.inner, first, last};
}

void Kernel(const KernelArgs& a, Rect tile) {
  const int64_t rows = std::max<int64_t>(1, a.output_shape(0).dim(1));
  PackPanels(ShapeOf(a.attrs, a.input_shape(0)), a.attrs.as<PackAttrs>().transposed, a.input<float>(0),
             tile.row_begin / rows, tile.row_end / rows, a.outputs[0].data);
}

void KernelF64(const KernelArgs& a, Rect tile) {
  const PanelShape shape = ShapeOf(a.attrs, a.input_shape(0));
  const bool transposed = a.attrs.as<PackAttrs>().transposed;
  const int64_t rows = std::max<int64_t>(1, shape.rows()), first = tile.row_begin / rows * shape.width;
  double* const panels = a.output<double>(0);
  std::fill(panels + tile.row_begin * shape.width, panels + tile.row_end * shape.width, 0);
  for (int64_t j = first; j < std::min(shape.cols, tile.row_end / rows * shape.width); ++j) {
    for (int64_t k = 0; k < shape.inner; ++k) {
      panels[shape.Offset(k, j)] = a.input<double>(0)[transposed ? j * shape.inner + k : k * shape.cols + j];
    }
  }
}

void Reference(const ReferenceArgs& a) {
  const PanelShape shape = ShapeOf(a.attrs, a.input_types[0].shape);
  const bool transposed = a.attrs.as<PackAttrs>().transposed;
  for (int64_t k = 0; k < shape.inner; ++k) {
    for (int64_t j = 0; j < shape.cols; ++j) {
      a.outputs[0][shape.Offset(k, j)] = a.inputs[0][transposed ? j * shape.inner + k : k * shape.cols + j];
    }
  }
}

constexpr OpExample kExamples[] = {
    {.in = "f32[5,3]", .record = [](VarSpan in) { return VarList{Pack(in[0], false, kF32)}; }, .out = "f32[1,5,64]"},
    {.in = "f32[5,3]", .record = [](VarSpan in) { return VarList{Pack(in[0], true, kBF16)}; }, .out = "bf16[1,32,64]"},
    {.in = "f32[100,130]", .record = [](VarSpan in) { return VarList{Pack(in[0], false, kF32)}; }},
    {.in = "f32[130,100]", .record = [](VarSpan in) { return VarList{Pack(in[0], true, kF32)}; }},
    {.in = "f32[100,130]", .record = [](VarSpan in) { return VarList{Pack(in[0], false, kBF16)}; }},
    {.in = "f32[130,100]", .record = [](VarSpan in) { return VarList{Pack(in[0], true, kBF16)}; }},
    {.in = "f32[0,3]", .record = [](VarSpan in) { return VarList{Pack(in[0], false, kF32)}; }, .out = "f32[1,0,64]"},
    {.in = "f32[3]", .record = [](VarSpan in) { return VarList{Pack(in[0], false, kF32)}; }, .error = "b needs rank 2"},
    {.in = "f32[3,5]",
     .record = [](VarSpan in) { return VarList{Pack(in[0], false, kF64)}; },
     .error = "panels are of b's dtype"},
    {.in = "[130,100]", .record = [](VarSpan in) { return VarList{Pack(in[0], true, in[0].dtype())}; }},
    {.in = "i32[3,5]",
     .record = [](VarSpan in) { return VarList{Pack(in[0], false, kI32)}; },
     .error = "not defined for i32"},
};

}  // namespace

constexpr OpDef kPack = {.name = "pack",
                         .infer = Infer,
                         .kernels = {Kernel, KernelF64},
                         .cut = Cut::kRows,
                         .quantum = Quantum,
                         .access = Access,
                         .no_gradient = "it is recorded after gradients are expanded",
                         .reference = Reference,
                         .attrs = AttrOpsOf<PackAttrs>(),
                         .examples = kExamples};

Var Pack(Var b, bool transposed, DType dtype) { return Record(kPack, {b}, Attrs::Of(PackAttrs{dtype, transposed})); }
bool PacksBF16() { return HasPackedBF16Products(); }

}  // namespace weft
