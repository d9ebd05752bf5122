// y = value where mask is true, else x. The mask broadcasts to x.
#include <algorithm>
#include <cmath>

#include "weft/core/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/attributes.h"
#include "weft/ops/kernels/elementwise.h"
#include "weft/ops/kernels/select.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

absl::StatusOr<Types> Infer(const Attrs& attrs, TypeSpan in) {
  WEFT_RETURN_IF_ERROR(CheckNumber("mask_fill", attrs.as<MaskAttrs>().value, in[0].dtype, in));
  if (in[1].dtype != kBool) return ShapeError("mask_fill", "the mask must be bool", in);
  if (Broadcast(in[0].shape, in[1].shape) != in[0].shape) {
    return ShapeError("mask_fill", "the mask does not broadcast to x", in);
  }
  return Types{in[0]};
}

template <class T>
void Kernel(const KernelArgs& a, Rect tile) {
  const T value = ConvertTo<T>(a.attrs.as<MaskAttrs>().value);
  ForInnerLoops(a.output_shape(0), a.input_shape(0), a.input_shape(1), tile, [&](const InnerLoop& loop) {
    const T* x = a.input<T>(0) + loop.a;
    const bool* mask = a.input<bool>(1) + loop.b;
    T* y = a.output<T>(0) + loop.out;
    if (loop.b_stride != 0) {
      Selects<T>().select(mask, &value, 0, x, 1, y, loop.n);
    } else if (*mask) {
      std::fill_n(y, loop.n, value);
    } else if (x != y) {
      std::copy_n(x, loop.n, y);
    }
  });
}

// dx = dy, or 0 where the mask is true.
VarList Gradient(const GradientArgs& a) { return {MaskFill(a.grad(0), a.input(1), 0), Var{}}; }

// Marks masked elements as NaN, which the reference replaces by `value`.
double Chosen(double x, double mask) { return mask != 0 ? std::nan("") : x; }
void Reference(const ReferenceArgs& a) {
  BinaryReference(a, Chosen);
  for (double& y : a.outputs[0]) y = std::isnan(y) ? a.attrs.as<MaskAttrs>().value : y;
}

constexpr OpExample kExamples[] = {
    {.in = "[] bool[]", .record = [](VarSpan in) { return VarList{MaskFill(in[0], in[1], -2)}; }},
    {.in = "[3,37] bool[3,37]", .record = [](VarSpan in) { return VarList{MaskFill(in[0], in[1], 0.5)}; }},
    {.in = "[5,19] bool[19]", .record = [](VarSpan in) { return VarList{MaskFill(in[0], in[1], -1e30)}; }},
    {.in = "[2,3,7] bool[2,1,7]", .record = [](VarSpan in) { return VarList{MaskFill(in[0], in[1], 0)}; }},
    {.in = "[6,7] bool[6,1]", .record = [](VarSpan in) { return VarList{MaskFill(in[0], in[1], 3)}; }},
    {.in = "[6,7] bool[]", .record = [](VarSpan in) { return VarList{MaskFill(in[0], in[1], 3)}; }},
    {.in = "i32[6] bool[6]", .record = [](VarSpan in) { return VarList{MaskFill(in[0], in[1], -1)}; }, .below = 9},
    {.in = "[0,3] bool[3]", .record = [](VarSpan in) { return VarList{MaskFill(in[0], in[1], 3)}; }},
    {.in = "[3] bool[2,3]",
     .record = [](VarSpan in) { return VarList{MaskFill(in[0], in[1], 3)}; },
     .error = "does not broadcast to x"},
    {.in = "[3] i32[3]",
     .record = [](VarSpan in) { return VarList{MaskFill(in[0], in[1], 3)}; },
     .error = "must be bool"},
};

}  // namespace

constexpr OpDef kMaskFill = {.name = "mask_fill",
                             .infer = Infer,
                             .kernels = {Kernel<float>, Kernel<double>, Kernel<BF16>, Kernel<int32_t>, Kernel<bool>},
                             .cut = Cut::kBoth,
                             .access = BroadcastAccess,
                             .in_place = 0,
                             .gradient = Gradient,
                             .reference = Reference,
                             .autocast = Autocast::kFollow,
                             .attrs = AttrOpsOf<MaskAttrs>(),
                             .examples = kExamples};
Var MaskFill(Var x, Var mask, double value) { return Record(kMaskFill, {x, mask}, Attrs::Of(MaskAttrs{value})); }

}  // namespace weft
