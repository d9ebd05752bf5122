// Layer norm (Ba et al., 2016) and RMS norm (Zhang and Sennrich, 2019) along the last axis, and their gradients:
//
//   layer_norm: y = gain · (x - mean) · rstd + bias, where rstd = 1 / sqrt(variance + epsilon)
//   rms_norm:   y = gain · x · rstd, where rstd = 1 / sqrt(mean(x²) + epsilon)
//
// The statistics rstd and, for layer norm, mean are outputs [..., 1], too. x, y and their gradients may be bf16; all
// other operands are then f32. batch_norm, at the end of the file, normalises each feature over all rows.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "weft/base/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/attributes.h"
#include "weft/ops/kernels/rows/rows.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

// Checks that x, the first input, has rank >= 1. Returns the type of vectors such as gain, [C].
absl::StatusOr<TensorType> VectorOf(const char* op, TypeSpan in) {
  if (in[0].shape.rank() < 1) return ShapeError(op, "x needs rank >= 1", in);
  return TensorType{ComputedIn(in[0].dtype), {in[0].shape.dim(-1)}};
}

// Returns the type of a statistic of each row of x.
TensorType StatisticOf(const TensorType& x) { return {ComputedIn(x.dtype), WithDim(x.shape, -1, 1)}; }

// Checks that the inputs `first` .. `end` - 1 have the type `type`. `names`: their names, for the error.
absl::Status CheckTypes(const char* op, TypeSpan in, int first, int end, const char* names, const TensorType& type) {
  for (int i = first; i < end; ++i) {
    if (in[i] != type) return ShapeError(op, absl::StrCat(names, " must be ", ToString(type)), in);
  }
  return absl::OkStatus();
}

absl::Status CheckEpsilon(const char* op, const Attrs& attrs, TypeSpan in) {
  const double epsilon = attrs.as<NormAttrs>().epsilon;
  return epsilon > 0 ? absl::OkStatus() : ShapeError(op, absl::StrCat("epsilon = ", epsilon, ", wanted > 0"), in);
}

// Checks epsilon and the types of x, gain and bias. Returns the types of y and rstd or, if `centred`, y, mean and rstd.
template <const OpDef& op, bool centred>
absl::StatusOr<Types> Infer(const Attrs& attrs, TypeSpan in) {
  WEFT_ASSIGN_OR_RETURN(const TensorType vector, VectorOf(op.name, in));
  WEFT_RETURN_IF_ERROR(CheckTypes(op.name, in, 1, in.size(), centred ? "gain and bias" : "gain", vector));
  WEFT_RETURN_IF_ERROR(CheckEpsilon(op.name, attrs, in));
  Types types(in.size(), StatisticOf(in[0]));
  types[0] = in[0];
  return types;
}

// Computes layer norm or, if not `centred`, RMS norm.
template <class T, bool centred>
void Kernel(const KernelArgs& a, Rect tile) {
  using C = Computed<T>;
  const C epsilon = static_cast<C>(a.attrs.as<NormAttrs>().epsilon);
  const int64_t n = a.output_shape(0).cols();
  const C* const bias = centred ? a.input<C>(2) : nullptr;
  for (int64_t r = tile.row_begin; r < tile.row_end; ++r) {
    C* const mean = centred ? a.output<C>(1) + r : nullptr;
    C* const rstd = a.output<C>(centred ? 2 : 1) + r;
    Rows<T>().norm(a.input<T>(0) + r * n, a.input<C>(1), bias, epsilon, a.output<T>(0) + r * n, mean, rstd, n);
  }
}

// Returns `dx` + `part` in the dtype of `x`, or only `part` if `dx` is empty. `part`: the gradient through a statistic.
Var AddPart(Var dx, Var part, Var x) {
  part = Cast(part, x.dtype());
  return dx ? dx + part : part;
}

// dx is the sum of three terms. The term through y is the result of the gradient op, the term through the mean is
// dmean / C, and the term through rstd is -rstd³ · (x - mean) / C · drstd. RMS norm lacks the second term, and the mean
// in the third.
template <bool centred>
VarList Gradient(const GradientArgs& a) {
  const int rstd_output = centred ? 2 : 1;
  const Var x = Cast(a.input(0), a.output(1).dtype()), rstd = a.output(rstd_output), drstd = a.grad(rstd_output);
  const double scale = 1.0 / static_cast<double>(x.dim(-1));
  VarList gradients(a.inputs.size());
  if (a.grad(0)) {
    VarList inputs = {a.input(0), a.input(1)};
    inputs.insert(inputs.end(), a.outputs.begin() + 1, a.outputs.end());
    inputs.push_back(a.grad(0));
    gradients = RecordAll(centred ? kLayerNormGradient : kRmsNormGradient, inputs);
    for (size_t i = 1; i < gradients.size(); ++i) gradients[i] = Sum(gradients[i], 0);
  }
  Var& dx = gradients[0];
  if (centred && a.grad(1)) dx = AddPart(dx, BroadcastTo(Scale(a.grad(1), scale), x.shape()), a.input(0));
  if (drstd) {
    const Var factor = Scale(rstd * rstd * rstd * drstd, -scale);
    dx = AddPart(dx, (centred ? x - a.output(1) : x) * factor, a.input(0));
  }
  return gradients;
}

template <bool centred>
VarList Elementary(const Attrs& attrs, VarSpan in) {
  const Var x = Cast(in[0], in[1].dtype()), mean = centred ? Mean(x, -1, true) : Var(), from = centred ? x - mean : x;
  const Var rstd = 1 / Sqrt(Mean(from * from, -1, true) + attrs.as<NormAttrs>().epsilon), y = from * rstd * in[1];
  if (!centred) return {Cast(y, in[0].dtype()), rstd};
  return {Cast(y + in[2], in[0].dtype()), mean, rstd};
}

constexpr NormAttrs kSmall = {.epsilon = 1e-3}, kZero = {.epsilon = 0};

constexpr OpExample kLayerNormExamples[] = {
    {.in = "[1] [1] [1]", .record = RecordWith<kLayerNorm, kSmall>},
    {.in = "[7,16] [16] [16]", .record = RecordWith<kLayerNorm, kSmall>},
    {.in = "[2,3,5] [5] [5]", .record = RecordWith<kLayerNorm, kSmall>},
    {.in = "[130,67] [67] [67]", .record = RecordWith<kLayerNorm, kSmall>},
    // The mean is far from zero, where E[x²] - E[x]² would lose digits of the variance. The tolerance covers the
    // rounding of x - mean.
    {.in = "[3,257] [257] [257]", .record = RecordWith<kLayerNorm, kSmall>, .low = 1, .high = 9, .tolerance = 1e-5},
    {.in = "[0,4] [4] [4]", .record = RecordWith<kLayerNorm, kSmall>},
    {.in = "bf16[130,67] f32[67] f32[67]", .record = RecordWith<kLayerNorm, kSmall>, .out = "bf16[130,67]"},
    {.in = "[] [1] [1]", .record = RecordWith<kLayerNorm, kSmall>, .error = "rank >= 1"},
    {.in = "bf16[2,3] bf16[3] f32[3]",
     .record = RecordWith<kLayerNorm, kSmall>,
     .error = "gain and bias must be f32[3]"},
    {.in = "[2,3] [2] [3]", .record = RecordWith<kLayerNorm, kSmall>, .error = "gain and bias must be f32[3]"},
    {.in = "[3] [3] [3]", .record = RecordWith<kLayerNorm, kZero>, .error = "epsilon = 0, wanted > 0"},
};

constexpr OpExample kRmsNormExamples[] = {
    {.in = "[1] [1]", .record = RecordWith<kRmsNorm, kSmall>},
    {.in = "[7,16] [16]", .record = RecordWith<kRmsNorm, kSmall>},
    {.in = "[2,3,5] [5]", .record = RecordWith<kRmsNorm, kSmall>},
    {.in = "[130,67] [67]", .record = RecordWith<kRmsNorm, kSmall>},
    {.in = "[3,257] [257]", .record = RecordWith<kRmsNorm, kSmall>, .low = -90, .high = 90},
    {.in = "[0,4] [4]", .record = RecordWith<kRmsNorm, kSmall>},
    {.in = "bf16[130,67] f32[67]", .record = RecordWith<kRmsNorm, kSmall>, .out = "bf16[130,67]"},
    {.in = "[] [1]", .record = RecordWith<kRmsNorm, kSmall>, .error = "rank >= 1"},
    {.in = "[2,3] [2]", .record = RecordWith<kRmsNorm, kSmall>, .error = "gain must be f32[3]"},
    {.in = "[3] [3]", .record = RecordWith<kRmsNorm, kZero>, .error = "epsilon = 0, wanted > 0"},
};

// The gradient ops take (x, gain, mean, rstd, dy) or, for RMS norm, (x, gain, rstd, dy). Let x̂ = (x - mean) · rstd, or
// x · rstd, and h = gain · dy. Outputs are
//   dx = rstd · (h - mean(h) - x̂ · mean(h · x̂)) along the last axis, where RMS norm omits mean(h);
//   the sums of dy · x̂ over blocks of 64 rows, [blocks, C], whose sum is dgain;
//   for layer norm only, the same sums of dy, whose sum is dbias.
template <const OpDef& op, bool centred>
absl::StatusOr<Types> InferGradient(const Attrs&, TypeSpan in) {
  WEFT_ASSIGN_OR_RETURN(const TensorType vector, VectorOf(op.name, in));
  const int dy = static_cast<int>(in.size()) - 1;
  WEFT_RETURN_IF_ERROR(CheckTypes(op.name, in, 1, 2, "gain", vector));
  WEFT_RETURN_IF_ERROR(CheckTypes(op.name, in, 2, dy, centred ? "mean and rstd" : "rstd", StatisticOf(in[0])));
  if (in[dy] != in[0]) return ShapeError(op.name, "dy must have x's type", in);
  Types types(in.size() - 2, {vector.dtype, {BlockCount(in[0].shape.rows(), kSumBlock), in[0].shape.dim(-1)}});
  types[0] = in[0];
  return types;
}

// A tile is whole blocks of kSumBlock rows of dx. The other outputs have one row for each block.
int64_t Quantum(const OpArgs&) { return kSumBlock; }
Rect Access(const OpArgs& args, int operand, Rect tile) {
  if (operand <= static_cast<int>(args.inputs.size())) {
    return DefaultAccess(args, args.outputs[0].shape, operand, tile);
  }
  return {tile.row_begin / kSumBlock, BlockCount(tile.row_end, kSumBlock), tile.col_begin, tile.col_end};
}

template <class T, bool centred>
void GradientKernel(const KernelArgs& a, Rect tile) {
  using C = Computed<T>;
  const int64_t n = a.output_shape(0).cols();
  const int rstd = centred ? 3 : 2, dy = rstd + 1;
  for (int64_t begin = tile.row_begin; begin < tile.row_end; begin += kSumBlock) {
    C* const dgain = a.output<C>(1) + begin / kSumBlock * n;
    C* const dbias = centred ? a.output<C>(2) + begin / kSumBlock * n : nullptr;
    std::fill_n(dgain, n, C{0});
    if (centred) std::fill_n(dbias, n, C{0});
    for (int64_t r = begin; r < std::min(begin + kSumBlock, tile.row_end); ++r) {
      const C mean = centred ? a.input<C>(2)[r] : C{0};
      Rows<T>().norm_gradient(a.input<T>(0) + r * n, a.input<C>(1), mean, a.input<C>(rstd)[r], a.input<T>(dy) + r * n,
                              a.output<T>(0) + r * n, dgain, dbias, n);
    }
  }
}

// Returns the sums of `terms` [..., C] over blocks of rows.
Var SumsOfRows(Var terms) {
  const Var by_row = Reshape(terms, {terms.shape().rows(), terms.dim(-1)});
  return by_row.dim(0) == 0 ? by_row : SumBlocks(by_row, 0);
}

template <bool centred>
VarList ElementaryGradient(const Attrs&, VarSpan in) {
  const Var gain = in[1], rstd = in[centred ? 3 : 2];
  const Var x = Cast(in[0], gain.dtype()), dy = Cast(in.back(), gain.dtype());
  const Var normal = (centred ? x - in[2] : x) * rstd, h = dy * gain, along = normal * Mean(h * normal, -1, true);
  const Var dx = rstd * ((centred ? h - Mean(h, -1, true) : h) - along);
  VarList gradients = {Cast(dx, in[0].dtype()), SumsOfRows(dy * normal)};
  if (centred) gradients.push_back(SumsOfRows(dy));
  return gradients;
}

constexpr OpExample kLayerNormGradientExamples[] = {
    {.in = "[1] [1] [1] [1] [1]"},
    {.in = "[7,16] [16] [7,1] [7,1] [7,16]"},
    {.in = "[2,3,5] [5] [2,3,1] [2,3,1] [2,3,5]"},
    {.in = "[130,17] [17] [130,1] [130,1] [130,17]"},  // three blocks of rows
    // Terms of up to 8 cancel in sums of 64.
    {.in = "[65,257] [257] [65,1] [65,1] [65,257]", .low = -2, .high = 2, .tolerance = 2e-5},
    {.in = "[0,4] [4] [0,1] [0,1] [0,4]"},
    {.in = "bf16[130,67] f32[67] f32[130,1] f32[130,1] bf16[130,67]", .out = "bf16[130,67]"},
    {.in = "[] [1] [1] [1] []", .error = "rank >= 1"},
    {.in = "[2,3] [2] [2,1] [2,1] [2,3]", .error = "gain must be f32[3]"},
    {.in = "[2,3] [3] [2] [2] [2,3]", .error = "mean and rstd must be f32[2,1]"},
    {.in = "[2,3] [3] [2,1] [2,1] [3]", .error = "dy must have x's type"},
};

constexpr OpExample kRmsNormGradientExamples[] = {
    {.in = "[1] [1] [1] [1]"},
    {.in = "[7,16] [16] [7,1] [7,16]"},
    {.in = "[2,3,5] [5] [2,3,1] [2,3,5]"},
    {.in = "[130,17] [17] [130,1] [130,17]"},  // three blocks of rows
    // Terms of up to 8 cancel in sums of 64.
    {.in = "[65,257] [257] [65,1] [65,257]", .low = -2, .high = 2, .tolerance = 2e-5},
    {.in = "[0,4] [4] [0,1] [0,4]"},
    {.in = "bf16[130,67] f32[67] f32[130,1] bf16[130,67]", .out = "bf16[130,67]"},
    {.in = "[] [1] [1] []", .error = "rank >= 1"},
    {.in = "[2,3] [2] [2,1] [2,3]", .error = "gain must be f32[3]"},
    {.in = "[2,3] [3] [2] [2,3]", .error = "rstd must be f32[2,1]"},
    {.in = "[2,3] [3] [2,1] [3]", .error = "dy must have x's type"},
};

// Return `row` with the fields that layer norm and RMS norm share, and those that follow from `centred`.
template <const OpDef& op, bool centred>
constexpr OpDef NormOp(OpDef row) {
  row.infer = Infer<op, centred>;
  row.outputs = centred ? 3 : 2;
  row.kernels = {Kernel<float, centred>, Kernel<double, centred>, Kernel<BF16, centred>};
  row.cut = Cut::kRows;
  row.in_place = 0;
  row.gradient = Gradient<centred>;
  row.elementary = Elementary<centred>;
  row.autocast = Autocast::kFirst;
  row.attrs = AttrOpsOf<NormAttrs>();
  return row;
}
template <const OpDef& op, bool centred>
constexpr OpDef NormGradientOp(OpDef row) {
  row.infer = InferGradient<op, centred>;
  row.outputs = centred ? 3 : 2;
  row.kernels = {GradientKernel<float, centred>, GradientKernel<double, centred>, GradientKernel<BF16, centred>};
  row.cut = Cut::kRows;
  row.quantum = Quantum;
  row.access = Access;
  row.in_place = centred ? 4 : 3;
  row.elementary = ElementaryGradient<centred>;
  return row;
}

}  // namespace

constexpr OpDef kLayerNorm =
    NormOp<kLayerNorm, true>({.name = "layer_norm", .cost = FlopsPerElement<8>, .examples = kLayerNormExamples});

Var LayerNorm(Var x, Var gain, Var bias, double epsilon) {
  return Record(kLayerNorm, {x, gain, bias}, Attrs::Of(NormAttrs{.epsilon = epsilon}));
}

constexpr OpDef kRmsNorm =
    NormOp<kRmsNorm, false>({.name = "rms_norm", .cost = FlopsPerElement<6>, .examples = kRmsNormExamples});

Var RmsNorm(Var x, Var gain, double epsilon) {
  return Record(kRmsNorm, {x, gain}, Attrs::Of(NormAttrs{.epsilon = epsilon}));
}

constexpr OpDef kLayerNormGradient = NormGradientOp<kLayerNormGradient, true>(
    {.name = "layer_norm_gradient", .cost = FlopsPerElement<16>, .examples = kLayerNormGradientExamples});

constexpr OpDef kRmsNormGradient = NormGradientOp<kRmsNormGradient, false>(
    {.name = "rms_norm_gradient", .cost = FlopsPerElement<12>, .examples = kRmsNormGradientExamples});

// Batch norm (Ioffe and Szegedy, 2015): y = gain · (x - mean) / sqrt(variance + ε) + bias, for each feature of the last
// axis. Mean and variance are those of the feature over all rows or, in mode kEval, the running ones. Inputs are x
// [..., C], and gain, bias, running mean and running variance [C]. Outputs are y [..., C], and the mean and variance
// [C] that y uses. The op has no kernel. The compiler replaces it by other ops, which differ between kTrain and kEval.
namespace {

absl::StatusOr<Types> InferBatchNorm(const Attrs& attrs, TypeSpan in) {
  const Shape& shape = in[0].shape;
  if (shape.rank() < 2) return ShapeError("batch_norm", "x needs rank >= 2", in);
  if (in[0].dtype != kF32 && in[0].dtype != kF64) {
    return ShapeError("batch_norm", absl::StrCat("not defined for ", Name(in[0].dtype)), in);
  }
  WEFT_RETURN_IF_ERROR(CheckEpsilon("batch_norm", attrs, in));
  const TensorType feature = {in[0].dtype, {shape.dim(-1)}};
  WEFT_RETURN_IF_ERROR(CheckTypes("batch_norm", in, 1, 5, "gain, bias, mean and variance", feature));
  return Types{in[0], feature, feature};
}

Var NormalizedByFeature(const Attrs& attrs, VarSpan in, Var mean, Var variance) {
  return (in[0] - mean) * (in[1] / Sqrt(variance + attrs.as<NormAttrs>().epsilon)) + in[2];
}

VarList ElementaryBatchNorm(const Attrs& attrs, VarSpan in) {
  const int64_t features = in[0].dim(-1);
  const Var rows = Reshape(in[0], {in[0].shape().elements() / std::max<int64_t>(features, 1), features});
  const Var mean = Mean(rows, 0), variance = Mean(Square(rows - mean), 0);
  return {NormalizedByFeature(attrs, in, mean, variance), mean, variance};
}

VarList BatchNormInEval(const Attrs& attrs, VarSpan in) {
  return {NormalizedByFeature(attrs, in, in[3], in[4]), in[3], in[4]};
}

VarList BatchNormExample(VarSpan in) {
  return RecordAll(kBatchNorm, {in[0], in[1], in[2], in[3], in[3]}, Attrs::Of(NormAttrs{.epsilon = 1e-3}));
}

constexpr OpExample kBatchNormExamples[] = {
    {.in = "[4,3] [3] [3] [3]", .record = BatchNormExample, .out = "[4,3]"},
    {.in = "[2,5,19] [19] [19] [19]", .record = BatchNormExample},
    {.in = "[67,130] [130] [130] [130]", .record = BatchNormExample, .tolerance = 1e-5},
    {.in = "[3] [3] [3] [3]", .record = BatchNormExample, .error = "x needs rank >= 2"},
    {.in = "[4,3] [3] [4] [3]", .record = BatchNormExample, .error = "gain, bias, mean and variance must be f32[3]"},
    {.in = "i32[4,3] i32[3] i32[3] i32[3]", .record = BatchNormExample, .error = "not defined for i32"},
};

}  // namespace

constexpr OpDef kBatchNorm = {.name = "batch_norm",
                              .infer = InferBatchNorm,
                              .outputs = 3,
                              .lower = ElementaryBatchNorm,
                              .elementary = ElementaryBatchNorm,
                              .in_eval = BatchNormInEval,
                              .attrs = AttrOpsOf<NormAttrs>(),
                              .examples = kBatchNormExamples};

BatchNormResult BatchNorm(Var x, Var gain, Var bias, Var running_mean, Var running_variance, double epsilon) {
  const VarList y =
      RecordAll(kBatchNorm, {x, gain, bias, running_mean, running_variance}, Attrs::Of(NormAttrs{.epsilon = epsilon}));
  return {y[0], y[1], y[2]};
}

}  // namespace weft
