// y = gain · (x - mean) / sqrt(variance + ε) + bias (Ioffe and Szegedy, 2015), for each feature of the last axis.
//
// Mean and variance are those of the feature over all rows or, in mode kEval, the running ones. Inputs are x [..., C],
// and gain, bias, running mean and running variance [C]. Outputs are y [..., C], and the mean and variance [C] that y
// uses. The op has no kernel. The compiler replaces it by other ops, which differ between kTrain and kEval.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "weft/core/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/attributes.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

absl::StatusOr<Types> Infer(const Attrs& attrs, TypeSpan in) {
  const double epsilon = attrs.as<NormAttrs>().epsilon;
  const Shape& shape = in[0].shape;
  if (shape.rank() < 2) return ShapeError("batch_norm", "x needs rank >= 2", in);
  if (in[0].dtype != kF32 && in[0].dtype != kF64) {
    return ShapeError("batch_norm", absl::StrCat("not defined for ", Name(in[0].dtype)), in);
  }
  if (!(epsilon > 0)) return ShapeError("batch_norm", absl::StrCat("epsilon = ", epsilon, ", wanted > 0"), in);
  const TensorType feature = {in[0].dtype, {shape.dim(-1)}};
  for (size_t i = 1; i < 5; ++i) {
    if (in[i] == feature) continue;
    return ShapeError("batch_norm", "gain, bias, mean and variance must be " + ToString(feature), in);
  }
  return Types{in[0], feature, feature};
}

Var Normalized(const Attrs& attrs, VarSpan in, Var mean, Var variance) {
  return (in[0] - mean) * (in[1] / Sqrt(variance + attrs.as<NormAttrs>().epsilon)) + in[2];
}

VarList Elementary(const Attrs& attrs, VarSpan in) {
  const int64_t features = in[0].dim(-1);
  const Var rows = Reshape(in[0], {in[0].shape().elements() / std::max<int64_t>(features, 1), features});
  const Var mean = Mean(rows, 0), variance = Mean(Square(rows - mean), 0);
  return {Normalized(attrs, in, mean, variance), mean, variance};
}

VarList InEval(const Attrs& attrs, VarSpan in) { return {Normalized(attrs, in, in[3], in[4]), in[3], in[4]}; }

VarList Example(VarSpan in) {
  return RecordAll(kBatchNorm, {in[0], in[1], in[2], in[3], in[3]}, Attrs::Of(NormAttrs{.epsilon = 1e-3}));
}

constexpr OpExample kExamples[] = {
    {.in = "[4,3] [3] [3] [3]", .record = Example, .out = "[4,3]"},
    {.in = "[2,5,19] [19] [19] [19]", .record = Example},
    {.in = "[67,130] [130] [130] [130]", .record = Example, .tolerance = 1e-5},
    {.in = "[3] [3] [3] [3]", .record = Example, .error = "x needs rank >= 2"},
    {.in = "[4,3] [3] [4] [3]", .record = Example, .error = "gain, bias, mean and variance must be f32[3]"},
    {.in = "i32[4,3] i32[3] i32[3] i32[3]", .record = Example, .error = "not defined for i32"},
};

}  // namespace

constexpr OpDef kBatchNorm = {.name = "batch_norm",
                              .infer = Infer,
                              .outputs = 3,
                              .lower = Elementary,
                              .elementary = Elementary,
                              .in_eval = InEval,
                              .attrs = AttrOpsOf<NormAttrs>(),
                              .examples = kExamples};

BatchNormResult BatchNorm(Var x, Var gain, Var bias, Var running_mean, Var running_variance, double epsilon) {
  const VarList y =
      RecordAll(kBatchNorm, {x, gain, bias, running_mean, running_variance}, Attrs::Of(NormAttrs{.epsilon = epsilon}));
  return {y[0], y[1], y[2]};
}

}  // namespace weft
