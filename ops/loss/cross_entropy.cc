// cross_entropy takes logits [..., V] and targets i32 [...]. It has three outputs [..., 1]:
//   row_loss = -Σ_v q_v · (logits_v - lse), where q_v is 1 - s + s / V at the target and s / V elsewhere; 0 if ignored;
//   lse = log Σ_v exp(logits_v); valid = 1, or 0 if the target is ignored.
// Targets equal to ignore_index or outside 0 .. V-1 are ignored. s is label_smoothing.
//
// cross_entropy_gradient computes the gradient of row_loss from (logits, targets, lse, drow):
// dlogits = (exp(logits - lse) - q) · drow, or 0 where the target is ignored.
#include "weft/ops/loss/cross_entropy.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "weft/base/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/attributes.h"
#include "weft/ops/kernels/rows/rows.h"

namespace weft {
namespace {

// Returns the type of one number for each row of logits.
TensorType ColumnOf(const TensorType& logits) { return {logits.dtype, WithDim(logits.shape, -1, 1)}; }

absl::StatusOr<Types> Infer(const Attrs& attrs, TypeSpan in) {
  WEFT_RETURN_IF_ERROR(CheckCrossEntropy("cross_entropy", attrs.as<CrossEntropyAttrs>(), in));
  return Types(3, ColumnOf(in[0]));
}

template <class T>
void Kernel(const KernelArgs& a, Rect tile) {
  const auto attrs = a.attrs.as<CrossEntropyAttrs>();
  const RowKernels<T>& rows = Rows<T>();
  const int64_t n = a.input_shape(0).cols();
  const T smoothing = static_cast<T>(attrs.label_smoothing);
  for (int64_t r = tile.row_begin; r < tile.row_end; ++r) {
    const T* const x = a.input<T>(0) + r * n;
    const int32_t target = a.input<int32_t>(1)[r];
    const bool valid = IsValidTarget(target, attrs, n);
    const auto [shift, log_sum] = rows.log_sum_exp(x, n);
    T loss = 0;
    if (valid) loss = log_sum - (x[target] - shift);
    if (valid && smoothing != 0) {
      const T uniform = log_sum - (rows.sum(x, n) / n - shift);
      loss = (1 - smoothing) * loss + smoothing * uniform;
    }
    a.output<T>(0)[r] = loss;
    a.output<T>(1)[r] = shift + log_sum;
    a.output<T>(2)[r] = valid ? 1 : 0;
  }
}

// dlogits is the sum of two terms: cross_entropy_gradient, through row_loss, and exp(logits - lse) · dlse, through lse.
VarList Gradient(const GradientArgs& a) {
  const Var logits = a.input(0), targets = a.input(1), lse = a.output(1);
  Var dlogits;
  if (a.grad(0)) dlogits = Record(kCrossEntropyGradient, {logits, targets, lse, a.grad(0)}, a.attrs);
  if (a.grad(1)) {
    const Var term = Exp(logits - lse) * a.grad(1);
    dlogits = dlogits ? dlogits + term : term;
  }
  return {dlogits, Var()};
}

// Returns q [..., V].
Var Distribution(const CrossEntropyAttrs& attrs, Var logits, Var targets) {
  const int64_t classes = logits.dim(-1);
  return OneHot(targets, classes, logits.dtype()) * (1 - attrs.label_smoothing) +
         attrs.label_smoothing / static_cast<double>(classes);
}

VarList Elementary(const Attrs& attrs, VarSpan in) {
  const auto own = attrs.as<CrossEntropyAttrs>();
  const Var logits = in[0], targets = in[1], lse = LogSumExp(logits, -1, true);
  const Var valid = CountedTargets(targets, logits.dtype(), own, logits.dim(-1));
  return {valid * Sum(Distribution(own, logits, targets) * (lse - logits), -1, true), lse, valid};
}

Cost CostOf(const OpArgs& args) {
  return {.flops = 6.0 * args.inputs[0].shape.elements(), .bytes = static_cast<double>(args.inputs[0].bytes())};
}

constexpr CrossEntropyAttrs kPlain = {}, kSmoothed = {.label_smoothing = 0.1}, kTooSmooth = {.label_smoothing = 1.01};
constexpr CrossEntropyAttrs kIgnoring = {.ignore_index = 1, .label_smoothing = 0.1};
constexpr CrossEntropyAttrs kTooLarge = {.ignore_index = int64_t{1} << 40};

// Records the op through CrossEntropy, which checks the declared bounds of targets. Other examples record only the op.
VarList LossExample(VarSpan in) { return {CrossEntropy(in[0], in[1], {.ignore_index = 1})}; }

constexpr OpExample kExamples[] = {
    {.in = "[1] i32[]", .record = RecordWith<kCrossEntropy, kPlain>, .below = 1, .out = "[1]"},
    {.in = "[7,5] i32[7]",
     .record = RecordWith<kCrossEntropy, kPlain>,
     .low = -3,
     .high = 3,
     .below = 5,
     .out = "[7,1]"},
    {.in = "[2,3,17] i32[2,3]", .record = RecordWith<kCrossEntropy, kSmoothed>, .low = -3, .high = 3, .below = 17},
    {.in = "[130,5] i32[130]",
     .record = RecordWith<kCrossEntropy, kIgnoring>,
     .below = 3},  // a third of the targets is ignored
    {.in = "[37,5] i32[37]",
     .record = RecordWith<kCrossEntropy, kSmoothed>,
     .below = 9},  // some targets are outside 0 .. 4
    {.in = "[7,5] i32[7]", .record = LossExample, .below = 5, .out = "[]"},
    {.in = "[3,257] i32[3]", .record = RecordWith<kCrossEntropy, kPlain>, .low = -90, .high = 90, .below = 257},
    {.in = "[0,5] i32[0]", .record = RecordWith<kCrossEntropy, kPlain>},
    {.in = "[] i32[]", .record = RecordWith<kCrossEntropy, kPlain>, .error = "logits need rank >= 1"},
    {.in = "[2,0] i32[2]", .record = RecordWith<kCrossEntropy, kPlain>, .error = "no classes"},
    {.in = "[2,3] [2]", .record = RecordWith<kCrossEntropy, kPlain>, .error = "targets must be i32[2]"},
    {.in = "[2,3] i32[3]", .record = RecordWith<kCrossEntropy, kPlain>, .error = "targets must be i32[2]"},
    {.in = "[2,3] i32[2]", .record = LossExample, .below = 4, .error = "below = 4, wanted below <= 3"},
    {.in = "[2,3] i32[2]",
     .record = RecordWith<kCrossEntropy, kTooSmooth>,
     .error = "label_smoothing 1.01 is outside [0, 1]"},
    {.in = "[2,3] i32[2]", .record = RecordWith<kCrossEntropy, kTooLarge>, .error = "does not fit i32"},
};

absl::StatusOr<Types> InferGradient(const Attrs& attrs, TypeSpan in) {
  WEFT_RETURN_IF_ERROR(CheckCrossEntropy("cross_entropy_gradient", attrs.as<CrossEntropyAttrs>(), in));
  const TensorType column = ColumnOf(in[0]);
  if (in[2] != column || in[3] != column) {
    return ShapeError("cross_entropy_gradient", absl::StrCat("lse and drow must be ", ToString(column)), in);
  }
  return Types{in[0]};
}

template <class T>
void GradientKernel(const KernelArgs& a, Rect tile) {
  const auto attrs = a.attrs.as<CrossEntropyAttrs>();
  const int64_t n = a.input_shape(0).cols();
  const T smoothing = static_cast<T>(attrs.label_smoothing);
  for (int64_t r = tile.row_begin; r < tile.row_end; ++r) {
    T* const dx = a.output<T>(0) + r * n;
    const int32_t target = a.input<int32_t>(1)[r];
    if (!IsValidTarget(target, attrs, n)) {
      std::fill_n(dx, n, T{0});
      continue;
    }
    const T d = a.input<T>(3)[r];
    Rows<T>().exp_difference(a.input<T>(0) + r * n, a.input<T>(2)[r], smoothing / n, d, dx, n);
    dx[target] -= (1 - smoothing) * d;
  }
}

// Let u be the gradient by dlogits, and p = exp(logits - lse). For ignored targets, all gradients are 0. For others:
// d(logits) = p · u · drow; d(lse) = -Σ_v p · u · drow; d(drow) = Σ_v u · (p - q).
VarList GradientOfGradient(const GradientArgs& a) {
  const Var logits = a.input(0), targets = a.input(1), lse = a.input(2), drow = a.input(3), u = a.grad(0);
  const Var counts = CountedTargets(targets, drow.dtype(), a.attrs.as<CrossEntropyAttrs>(), logits.dim(-1));
  const Var dlogits = Exp(logits - lse) * u * (drow * counts);
  const Var unit = Record(kCrossEntropyGradient, {logits, targets, lse, FillLike(drow, 1)}, a.attrs);
  return {dlogits, Var(), Scale(Sum(dlogits, -1, true), -1), Sum(u * unit, -1, true)};
}

VarList ElementaryGradient(const Attrs& attrs, VarSpan in) {
  const auto own = attrs.as<CrossEntropyAttrs>();
  const Var logits = in[0], targets = in[1], p = Exp(logits - in[2]);
  const Var counted = CountedTargets(targets, logits.dtype(), own, logits.dim(-1));
  return {(p - Distribution(own, logits, targets)) * (in[3] * counted)};
}

constexpr OpExample kGradientExamples[] = {
    {.in = "[1] i32[] [1] [1]", .record = RecordWith<kCrossEntropyGradient, kPlain>, .below = 1, .out = "[1]"},
    {.in = "[7,5] i32[7] [7,1] [7,1]", .record = RecordWith<kCrossEntropyGradient, kPlain>, .below = 5, .out = "[7,5]"},
    {.in = "[2,3,17] i32[2,3] [2,3,1] [2,3,1]", .record = RecordWith<kCrossEntropyGradient, kSmoothed>, .below = 17},
    {.in = "[130,5] i32[130] [130,1] [130,1]",
     .record = RecordWith<kCrossEntropyGradient, kIgnoring>,
     .below = 3},  // a third of the targets is ignored
    {.in = "[37,5] i32[37] [37,1] [37,1]",
     .record = RecordWith<kCrossEntropyGradient, kSmoothed>,
     .below = 9},  // some targets are outside 0 .. 4
    {.in = "[3,257] i32[3] [3,1] [3,1]",
     .record = RecordWith<kCrossEntropyGradient, kPlain>,
     .low = -3,
     .high = 3,
     .below = 257},
    {.in = "[0,5] i32[0] [0,1] [0,1]", .record = RecordWith<kCrossEntropyGradient, kPlain>},
    {.in = "[2,3] i32[3] [2,1] [2,1]",
     .record = RecordWith<kCrossEntropyGradient, kPlain>,
     .error = "targets must be i32[2]"},
    {.in = "[2,3] i32[2] [2] [2,1]",
     .record = RecordWith<kCrossEntropyGradient, kPlain>,
     .error = "lse and drow must be f32[2,1]"},
};

}  // namespace

absl::Status CheckCrossEntropy(const char* op, const CrossEntropyAttrs& attrs, TypeSpan in) {
  const Shape& logits = in[0].shape;
  if (logits.rank() < 1) return ShapeError(op, "logits need rank >= 1", in);
  if (logits.dim(-1) == 0) return ShapeError(op, "no classes", in);
  const TensorType targets = {kI32, Shape(logits.dims().first(logits.rank() - 1))};
  if (in[1] != targets) return ShapeError(op, absl::StrCat("targets must be ", ToString(targets)), in);
  if (!(attrs.label_smoothing >= 0 && attrs.label_smoothing <= 1)) {
    return ShapeError(op, absl::StrCat("label_smoothing ", attrs.label_smoothing, " is outside [0, 1]"), in);
  }
  if (attrs.ignore_index != static_cast<int32_t>(attrs.ignore_index)) {
    return ShapeError(op, absl::StrCat("ignore_index ", attrs.ignore_index, " does not fit i32"), in);
  }
  return absl::OkStatus();
}

Var CountedTargets(Var targets, DType dtype, const CrossEntropyAttrs& attrs, int64_t vocabulary) {
  const auto number = [&](double value) { return Fill(targets.tape, {kI32, {}}, value); };
  Shape column = targets.shape();
  column.Append(1);
  const Var t = Reshape(targets, column);
  const Var ignored = Equal(t, number(static_cast<double>(attrs.ignore_index)));
  Var counted = MaskFill(Fill(t.tape, {dtype, column}, 1), ignored, 0);
  counted = MaskFill(counted, Less(t, number(0)), 0);
  return MaskFill(counted, Less(number(static_cast<double>(vocabulary - 1)), t), 0);
}

constexpr OpDef kCrossEntropy = {.name = "cross_entropy",
                                 .infer = Infer,
                                 .outputs = 3,
                                 .kernels = {Kernel<float>, Kernel<double>},
                                 .domain = 0,
                                 .cut = Cut::kRows,
                                 .gradient = Gradient,
                                 .elementary = Elementary,
                                 .cost = CostOf,
                                 .attrs = AttrOpsOf<CrossEntropyAttrs>(),
                                 .examples = kExamples};

constexpr OpDef kCrossEntropyGradient = {.name = "cross_entropy_gradient",
                                         .infer = InferGradient,
                                         .kernels = {GradientKernel<float>, GradientKernel<double>},
                                         .cut = Cut::kRows,
                                         .in_place = 0,
                                         .gradient = GradientOfGradient,
                                         .elementary = ElementaryGradient,
                                         .cost = FlopsPerElement<8>,
                                         .attrs = AttrOpsOf<CrossEntropyAttrs>(),
                                         .examples = kGradientExamples};

Var CrossEntropy(Var logits, Var targets, const CrossEntropyOptions& options) {
  return Composite("cross_entropy", {logits, targets}, [&]() -> absl::StatusOr<Var> {
    if (options.weights || IsFloat(targets.dtype())) return SpeltCrossEntropy(logits, targets, options);
    const CrossEntropyAttrs attrs = {.ignore_index = options.ignore_index, .label_smoothing = options.label_smoothing};
    const VarList out = RecordAll(kCrossEntropy, {logits, targets}, Attrs::Of(attrs));
    RequireBounds("cross_entropy", targets, logits.dim(-1), "classes", options.ignore_index);
    if (options.reduction == Reduction::kNone) return Reshape(out[0], targets.shape());
    return options.reduction == Reduction::kSum ? Sum(out[0]) : Sum(out[0]) / Sum(out[2]);
  });
}

}  // namespace weft
