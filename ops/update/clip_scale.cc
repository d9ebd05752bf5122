// y = min(1, max_norm / (norm + 1e-6)), as PyTorch's clip_grad_norm_. If the norm is not finite, y is NaN. Otherwise,
// if max_norm is 0, y is 1.
#include <algorithm>
#include <cmath>
#include <limits>

#include "weft/core/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/attributes.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

struct ClipScaleAttrs {
  double max_norm = 0;
  auto Fields() const { return std::tuple{AttrField{"max_norm", max_norm}}; }
};

absl::StatusOr<Types> Infer(const Attrs& attrs, TypeSpan in) {
  if (in[0].shape.rank() != 0) return ShapeError("clip_scale", "the norm must be a scalar", in);
  const double max_norm = attrs.as<ClipScaleAttrs>().max_norm;
  if (!(max_norm >= 0)) return ShapeError("clip_scale", absl::StrCat("max_norm = ", max_norm, ", wanted >= 0"), in);
  return Types{in[0]};
}

double ClipScaleOf(double norm, double max_norm) {
  if (!std::isfinite(norm)) return std::numeric_limits<double>::quiet_NaN();
  return max_norm == 0 ? 1 : std::min(1.0, max_norm / (norm + 1e-6));
}

template <class T>
void Kernel(const KernelArgs& a, Rect) {
  *a.output<T>(0) = static_cast<T>(ClipScaleOf(*a.input<T>(0), a.attrs.as<ClipScaleAttrs>().max_norm));
}

void Reference(const ReferenceArgs& a) {
  a.outputs[0][0] = ClipScaleOf(a.inputs[0][0], a.attrs.as<ClipScaleAttrs>().max_norm);
}

constexpr ClipScaleAttrs kOff = {.max_norm = 0}, kOne = {.max_norm = 1}, kNegative = {.max_norm = -1};

constexpr OpExample kExamples[] = {
    {.in = "[]", .record = RecordWith<kClipScale, kOff>, .low = 2, .high = 3, .out = "[]"},
    {.in = "[]", .record = RecordWith<kClipScale, kOne>, .low = 2, .high = 3},
    {.in = "[]", .record = RecordWith<kClipScale, kOne>, .low = 0, .high = 0.9},
    {.in = "[]", .record = RecordWith<kClipScale, kOne>, .low = 1e30, .high = 2e30},
    {.in = "[1]", .record = RecordWith<kClipScale, kOne>, .error = "the norm must be a scalar"},
    {.in = "[]", .record = RecordWith<kClipScale, kNegative>, .error = "max_norm = -1, wanted >= 0"},
};

}  // namespace

constexpr OpDef kClipScale = {.name = "clip_scale",
                              .infer = Infer,
                              .kernels = {Kernel<float>, Kernel<double>},
                              .in_place = 0,
                              .no_gradient = "it follows the gradients",
                              .reference = Reference,
                              .attrs = AttrOpsOf<ClipScaleAttrs>(),
                              .examples = kExamples};

Var ClipScale(Var norm, double max_norm) {
  const Var scale = Record(kClipScale, {norm}, Attrs::Of(ClipScaleAttrs{.max_norm = max_norm}));
  return scale.dtype() == kF32 ? scale : Cast(scale, kF32);  // updates read f32
}

}  // namespace weft
