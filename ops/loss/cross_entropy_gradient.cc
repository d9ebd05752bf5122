// dlogits = (exp(logits - lse) - q) · drow, and 0 where the target is ignored.
//
// Inputs are logits [..., V], targets i32 [...], lse and drow [..., 1]. q and ignored targets are as in
// cross_entropy.cc.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "weft/core/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/kernels/rows.h"
#include "weft/ops/loss/cross_entropy.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

absl::StatusOr<Types> Infer(const Attrs& attrs, TypeSpan in) {
  WEFT_RETURN_IF_ERROR(CheckCrossEntropy("cross_entropy_gradient", attrs.as<CrossEntropyAttrs>(), in));
  TensorType column = in[0];
  column.shape.set_dim(-1, 1);
  if (in[2] != column || in[3] != column) {
    return ShapeError("cross_entropy_gradient", absl::StrCat("lse and drow must be ", ToString(column)), in);
  }
  return Types{in[0]};
}

template <class T>
void Kernel(const KernelArgs& a, Rect tile) {
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

// Let u be the gradient of dlogits and p = exp(logits - lse). Where the target counts:
// d(logits) = p · u · drow; d(lse) = -Σ_v p · u · drow; d(drow) = Σ_v u · (p - q).
VarList Gradient(const GradientArgs& a) {
  const Var logits = a.input(0), targets = a.input(1), lse = a.input(2), drow = a.input(3), u = a.grad(0);
  const double ignore_index = static_cast<double>(a.attrs.as<CrossEntropyAttrs>().ignore_index);
  const Var ignored = Equal(targets, Fill(targets.tape, {kI32, {}}, ignore_index));
  const Var in_range = Record(kEmbedding, {Fill(logits.tape, {drow.dtype(), {logits.dim(-1), 1}}, 1), targets});
  const Var counts = MaskFill(in_range, Reshape(ignored, drow.shape()), 0);
  const Var dlogits = Exp(logits - lse) * u * (drow * counts);
  const Var unit = Record(kCrossEntropyGradient, {logits, targets, lse, FillLike(drow, 1)}, a.attrs);
  return {dlogits, Var(), Scale(Sum(dlogits, -1, true), -1), Sum(u * unit, -1, true)};
}

void Reference(const ReferenceArgs& a) {
  const auto attrs = a.attrs.as<CrossEntropyAttrs>();
  const int64_t n = a.input_types[0].shape.cols();
  for (size_t e = 0; e < a.outputs[0].size(); ++e) {
    const size_t r = e / n;
    const int64_t v = e % n, target = static_cast<int64_t>(a.inputs[1][r]);
    if (target == attrs.ignore_index || target < 0 || target >= n) continue;
    const double q = attrs.label_smoothing / n + (v == target ? 1 - attrs.label_smoothing : 0);
    a.outputs[0][e] = (std::exp(a.inputs[0][e] - a.inputs[2][r]) - q) * a.inputs[3][r];
  }
}

template <int64_t ignore_index, int smoothing_percent>
VarList Example(VarSpan in) {
  const CrossEntropyAttrs attrs = {.ignore_index = ignore_index, .label_smoothing = smoothing_percent / 100.0};
  return RecordAll(kCrossEntropyGradient, in, Attrs::Of(attrs));
}

constexpr OpExample kExamples[] = {
    {.in = "[1] i32[] [1] [1]", .record = Example<-100, 0>, .below = 1, .out = "[1]"},
    {.in = "[7,5] i32[7] [7,1] [7,1]", .record = Example<-100, 0>, .below = 5, .out = "[7,5]"},
    {.in = "[2,3,17] i32[2,3] [2,3,1] [2,3,1]", .record = Example<-100, 10>, .below = 17},
    {.in = "[130,5] i32[130] [130,1] [130,1]",
     .record = Example<1, 10>,
     .below = 3},  // a third of the targets is ignored
    {.in = "[37,5] i32[37] [37,1] [37,1]", .record = Example<-100, 10>, .below = 9},  // some targets are outside 0 .. 4
    {.in = "[3,257] i32[3] [3,1] [3,1]", .record = Example<-100, 0>, .low = -3, .high = 3, .below = 257},
    {.in = "[0,5] i32[0] [0,1] [0,1]", .record = Example<-100, 0>},
    {.in = "[2,3] i32[3] [2,1] [2,1]", .record = Example<-100, 0>, .error = "targets must be i32[2]"},
    {.in = "[2,3] i32[2] [2] [2,1]", .record = Example<-100, 0>, .error = "lse and drow must be f32[2,1]"},
};

}  // namespace

constexpr OpDef kCrossEntropyGradient = {.name = "cross_entropy_gradient",
                                         .infer = Infer,
                                         .kernels = {Kernel<float>, Kernel<double>},
                                         .cut = Cut::kRows,
                                         .in_place = 0,
                                         .gradient = Gradient,
                                         .reference = Reference,
                                         .cost = FlopsPerElement<8>,
                                         .attrs = AttrOpsOf<CrossEntropyAttrs>(),
                                         .examples = kExamples};

}  // namespace weft
