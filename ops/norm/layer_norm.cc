// y = gain · (x - mean) · rstd + bias, where rstd = 1 / sqrt(variance + epsilon), along the last axis (Ba et al.,
// 2016).
//
// Outputs are y, mean [..., 1] and rstd [..., 1]. If x and y are bf16, the other operands are f32.
#include "absl/strings/str_cat.h"
#include "weft/core/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/attributes.h"
#include "weft/ops/kernels/rows.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

absl::StatusOr<Types> Infer(const Attrs& attrs, TypeSpan in) {
  if (in[0].shape.rank() < 1) return ShapeError("layer_norm", "x needs rank >= 1", in);
  const DType computed = ComputedIn(in[0].dtype);
  const TensorType vector = {computed, {in[0].shape.dim(-1)}};
  if (in[1] != vector || in[2] != vector) {
    return ShapeError("layer_norm", absl::StrCat("gain and bias must be ", ToString(vector)), in);
  }
  const double epsilon = attrs.as<NormAttrs>().epsilon;
  if (!(epsilon > 0)) return ShapeError("layer_norm", absl::StrCat("epsilon = ", epsilon, ", wanted > 0"), in);
  TensorType statistics = {computed, in[0].shape};
  statistics.shape.set_dim(-1, 1);
  return Types{in[0], statistics, statistics};
}

template <class T>
void Kernel(const KernelArgs& a, Rect tile) {
  using C = Computed<T>;
  const C epsilon = static_cast<C>(a.attrs.as<NormAttrs>().epsilon);
  const int64_t n = a.output_shape(0).cols();
  for (int64_t r = tile.row_begin; r < tile.row_end; ++r) {
    Rows<T>().layer_norm(a.input<T>(0) + r * n, a.input<C>(1), a.input<C>(2), epsilon, a.output<T>(0) + r * n,
                         a.output<C>(1) + r, a.output<C>(2) + r, n);
  }
}

// y has the gradient layer_norm_gradient. mean gives dx = dmean / C; rstd gives dx = -rstd³ · (x - mean) / C · drstd.
VarList Gradient(const GradientArgs& a) {
  const Var x = Cast(a.input(0), a.output(1).dtype()), mean = a.output(1), rstd = a.output(2);
  const double scale = 1.0 / static_cast<double>(x.dim(-1));
  VarList gradients(3);
  const auto add_to_dx = [&](Var term) {
    term = Cast(term, a.input(0).dtype());
    gradients[0] = gradients[0] ? gradients[0] + term : term;
  };
  if (a.grad(0)) {
    const VarList parts = RecordAll(kLayerNormGradient, {a.input(0), a.input(1), mean, rstd, a.grad(0)});
    gradients = {parts[0], Sum(parts[1], 0), Sum(parts[2], 0)};
  }
  if (a.grad(1)) add_to_dx(BroadcastTo(Scale(a.grad(1), scale), x.shape()));
  if (a.grad(2)) add_to_dx((x - mean) * Scale(rstd * rstd * rstd * a.grad(2), -scale));
  return gradients;
}

VarList Elementary(const Attrs& attrs, VarSpan in) {
  const Var x = Cast(in[0], in[1].dtype());
  const Var mean = Mean(x, -1, true);
  const Var centred = x - mean;
  const Var variance = Mean(centred * centred, -1, true);
  const Var rstd = 1 / Sqrt(variance + attrs.as<NormAttrs>().epsilon);
  return {Cast(centred * rstd * in[1] + in[2], in[0].dtype()), mean, rstd};
}

VarList Recorded(VarSpan in, double epsilon) {
  return RecordAll(kLayerNorm, in, Attrs::Of(NormAttrs{.epsilon = epsilon}));
}
VarList Example(VarSpan in) { return Recorded(in, 1e-3); }

constexpr OpExample kExamples[] = {
    {.in = "[1] [1] [1]", .record = Example},
    {.in = "[7,16] [16] [16]", .record = Example},
    {.in = "[2,3,5] [5] [5]", .record = Example},
    {.in = "[130,67] [67] [67]", .record = Example},
    // The mean is far from zero, where E[x²] - E[x]² would lose the variance. The tolerance allows for rounding of x -
    // mean.
    {.in = "[3,257] [257] [257]", .record = Example, .low = 1, .high = 9, .tolerance = 1e-5},
    {.in = "[0,4] [4] [4]", .record = Example},
    {.in = "bf16[130,67] f32[67] f32[67]", .record = Example, .out = "bf16[130,67]"},
    {.in = "[] [1] [1]", .record = Example, .error = "rank >= 1"},
    {.in = "bf16[2,3] bf16[3] f32[3]", .record = Example, .error = "gain and bias must be f32[3]"},
    {.in = "[2,3] [2] [3]", .record = Example, .error = "gain and bias must be f32[3]"},
    {.in = "[3] [3] [3]", .record = [](VarSpan in) { return Recorded(in, 0); }, .error = "epsilon = 0, wanted > 0"},
};

}  // namespace

constexpr OpDef kLayerNorm = {.name = "layer_norm",
                              .infer = Infer,
                              .outputs = 3,
                              .kernels = {Kernel<float>, Kernel<double>, Kernel<BF16>},
                              .cut = Cut::kRows,
                              .in_place = 0,
                              .gradient = Gradient,
                              .elementary = Elementary,
                              .autocast = Autocast::kFirst,
                              .cost = FlopsPerElement<8>,
                              .attrs = AttrOpsOf<NormAttrs>(),
                              .examples = kExamples};

Var LayerNorm(Var x, Var gain, Var bias, double epsilon) {
  return Record(kLayerNorm, {x, gain, bias}, Attrs::Of(NormAttrs{.epsilon = epsilon}));
}

}  // namespace weft
