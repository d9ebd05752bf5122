// y = gain · x · rstd, where rstd = 1 / sqrt(mean(x²) + epsilon), along the last axis (Zhang and Sennrich, 2019).
//
// Outputs are y and rstd [..., 1]. If x and y are bf16, the other operands are f32.
#include "absl/strings/str_cat.h"
#include "weft/core/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/attributes.h"
#include "weft/ops/kernels/rows.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

absl::StatusOr<Types> Infer(const Attrs& attrs, TypeSpan in) {
  if (in[0].shape.rank() < 1) return ShapeError("rms_norm", "x needs rank >= 1", in);
  const DType computed = ComputedIn(in[0].dtype);
  const TensorType vector = {computed, {in[0].shape.dim(-1)}};
  if (in[1] != vector) return ShapeError("rms_norm", absl::StrCat("gain must be ", ToString(vector)), in);
  const double epsilon = attrs.as<NormAttrs>().epsilon;
  if (!(epsilon > 0)) return ShapeError("rms_norm", absl::StrCat("epsilon = ", epsilon, ", wanted > 0"), in);
  TensorType statistics = {computed, in[0].shape};
  statistics.shape.set_dim(-1, 1);
  return Types{in[0], statistics};
}

template <class T>
void Kernel(const KernelArgs& a, Rect tile) {
  using C = Computed<T>;
  const C epsilon = static_cast<C>(a.attrs.as<NormAttrs>().epsilon);
  const int64_t n = a.output_shape(0).cols();
  for (int64_t r = tile.row_begin; r < tile.row_end; ++r) {
    Rows<T>().rms_norm(a.input<T>(0) + r * n, a.input<C>(1), epsilon, a.output<T>(0) + r * n, a.output<C>(1) + r, n);
  }
}

// y has the gradient rms_norm_gradient; rstd gives dx = -rstd³ · x / C · drstd.
VarList Gradient(const GradientArgs& a) {
  const Var x = a.input(0), rstd = a.output(1);
  VarList gradients(2);
  if (a.grad(0)) {
    const VarList parts = RecordAll(kRmsNormGradient, {x, a.input(1), rstd, a.grad(0)});
    gradients = {parts[0], Sum(parts[1], 0)};
  }
  if (a.grad(1)) {
    const Var factor = Scale(rstd * rstd * rstd * a.grad(1), -1.0 / static_cast<double>(x.dim(-1)));
    const Var term = Cast(Cast(x, rstd.dtype()) * factor, x.dtype());
    gradients[0] = gradients[0] ? gradients[0] + term : term;
  }
  return gradients;
}

VarList Elementary(const Attrs& attrs, VarSpan in) {
  const Var x = Cast(in[0], in[1].dtype()), rstd = 1 / Sqrt(Mean(x * x, -1, true) + attrs.as<NormAttrs>().epsilon);
  return {Cast(x * rstd * in[1], in[0].dtype()), rstd};
}

VarList Example(VarSpan in) { return RecordAll(kRmsNorm, in, Attrs::Of(NormAttrs{.epsilon = 1e-3})); }

constexpr OpExample kExamples[] = {
    {.in = "[1] [1]", .record = Example},
    {.in = "[7,16] [16]", .record = Example},
    {.in = "[2,3,5] [5]", .record = Example},
    {.in = "[130,67] [67]", .record = Example},
    {.in = "[3,257] [257]", .record = Example, .low = -90, .high = 90},
    {.in = "[0,4] [4]", .record = Example},
    {.in = "bf16[130,67] f32[67]", .record = Example, .out = "bf16[130,67]"},
    {.in = "[] [1]", .record = Example, .error = "rank >= 1"},
    {.in = "[2,3] [2]", .record = Example, .error = "gain must be f32[3]"},
    {.in = "[3] [3]",
     .record = [](VarSpan in) { return VarList{RmsNorm(in[0], in[1], 0)}; },
     .error = "epsilon = 0, wanted > 0"},
};

}  // namespace

constexpr OpDef kRmsNorm = {.name = "rms_norm",
                            .infer = Infer,
                            .outputs = 2,
                            .kernels = {Kernel<float>, Kernel<double>, Kernel<BF16>},
                            .cut = Cut::kRows,
                            .in_place = 0,
                            .gradient = Gradient,
                            .elementary = Elementary,
                            .autocast = Autocast::kFirst,
                            .cost = FlopsPerElement<6>,
                            .attrs = AttrOpsOf<NormAttrs>(),
                            .examples = kExamples};

Var RmsNorm(Var x, Var gain, double epsilon) {
  return Record(kRmsNorm, {x, gain}, Attrs::Of(NormAttrs{.epsilon = epsilon}));
}

}  // namespace weft
