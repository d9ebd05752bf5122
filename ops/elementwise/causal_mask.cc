// y = value where column > row + S - T, else x, for x [..., T, S].
#include <algorithm>

#include "weft/core/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/attributes.h"
#include "weft/ops/kernels/elementwise.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

absl::StatusOr<Types> Infer(const Attrs& attrs, TypeSpan in) {
  WEFT_RETURN_IF_ERROR(CheckNumber("causal_mask", attrs.as<MaskAttrs>().value, in[0].dtype, in));
  if (in[0].shape.rank() < 2) return ShapeError("causal_mask", "x needs rank >= 2", in);
  return Types{in[0]};
}

// Returns the number of columns that row t sees: t + S - T + 1. So the last row sees all columns.
int64_t Visible(const Shape& shape, int64_t row) {
  const int64_t target = shape.dim(-2), source = shape.dim(-1);
  return std::clamp<int64_t>(row % target + source - target + 1, 0, source);
}

template <class T>
void Kernel(const KernelArgs& a, Rect tile) {
  const Shape& shape = a.output_shape(0);
  const T value = ConvertTo<T>(a.attrs.as<MaskAttrs>().value);
  for (int64_t row = tile.row_begin; row < tile.row_end; ++row) {
    const T* x = a.input<T>(0) + row * shape.cols();
    T* y = a.output<T>(0) + row * shape.cols();
    const int64_t masked = std::clamp(Visible(shape, row), tile.col_begin, tile.col_end);
    if (x != y) std::copy(x + tile.col_begin, x + masked, y + tile.col_begin);
    std::fill(y + masked, y + tile.col_end, value);
  }
}

// dx = dy, or 0 where x was masked.
VarList Gradient(const GradientArgs& a) { return {CausalMask(a.grad(0), 0)}; }

void Reference(const ReferenceArgs& a) {
  const Shape& shape = a.input_types[0].shape;
  const int64_t target = shape.dim(-2), source = shape.dim(-1);
  for (int64_t i = 0; i < shape.elements(); ++i) {
    const bool masked = i % source > i / source % target + source - target;
    a.outputs[0][i] = masked ? a.attrs.as<MaskAttrs>().value : a.inputs[0][i];
  }
}

constexpr OpExample kExamples[] = {
    {.in = "[1,1]", .record = [](VarSpan in) { return VarList{CausalMask(in[0], -5)}; }},
    {.in = "[17,17]", .record = [](VarSpan in) { return VarList{CausalMask(in[0], -1e30)}; }},
    {.in = "[2,3,5,9]", .record = [](VarSpan in) { return VarList{CausalMask(in[0], 0)}; }},  // four cached positions
    {.in = "[2,9,5]", .record = [](VarSpan in) { return VarList{CausalMask(in[0], 2)}; }},    // rows that see nothing
    {.in = "[0,3]", .record = [](VarSpan in) { return VarList{CausalMask(in[0], 0)}; }},
    {.in = "[3]", .record = [](VarSpan in) { return VarList{CausalMask(in[0], 0)}; }, .error = "rank >= 2"},
};

}  // namespace

constexpr OpDef kCausalMask = {.name = "causal_mask",
                               .infer = Infer,
                               .kernels = {Kernel<float>, Kernel<double>, Kernel<BF16>, Kernel<int32_t>},
                               .cut = Cut::kBoth,
                               .in_place = 0,
                               .gradient = Gradient,
                               .reference = Reference,
                               .autocast = Autocast::kFollow,
                               .attrs = AttrOpsOf<MaskAttrs>(),
                               .examples = kExamples};
Var CausalMask(Var x, double value) { return Record(kCausalMask, {x}, Attrs::Of(MaskAttrs{value})); }

}  // namespace weft
