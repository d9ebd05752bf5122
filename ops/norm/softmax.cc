// Both ops compute along the last axis:
//   softmax: y[i] = exp(x[i] - max x) / Σ_j exp(x[j] - max x). If all elements of a row are -inf, y is 0.
//   log_softmax: y[i] = x[i] - log Σ_j exp(x[j]). If all elements of a row are -inf, y is -inf.
#include <cmath>

#include "weft/ops/all_ops.h"
#include "weft/ops/kernels/rows/elementwise.h"
#include "weft/ops/kernels/rows/rows.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

// Fills in the fields that both ops share.
template <const OpDef& op>
constexpr OpDef RowOp(OpDef row) {
  row.infer = InferRows<op>;
  row.cut = Cut::kRows;
  row.in_place = 0;
  row.cost = FlopsPerElement<8>;
  return row;
}

template <class T>
void SoftmaxKernel(const KernelArgs& a, Rect tile) {
  const int64_t n = a.output_shape(0).cols();
  for (int64_t r = tile.row_begin; r < tile.row_end; ++r) {
    Rows<T>().softmax(a.input<T>(0) + r * n, a.output<T>(0) + r * n, n);
  }
}

// dx = y · (dy - Σ dy · y). The gradient reads y only, so x can be freed after the forward pass.
VarList SoftmaxGradient(const GradientArgs& a) {
  const Var y = a.output(0), dy = a.grad(0);
  return {y * (dy - Sum(dy * y, -1, true))};
}

VarList ElementarySoftmax(const Attrs&, VarSpan in) {
  const Var e = Exp(in[0] - Max(in[0], -1, true));
  return {e / Sum(e, -1, true)};
}

template <class T>
void LogSoftmaxKernel(const KernelArgs& a, Rect tile) {
  const RowKernels<T>& rows = Rows<T>();
  const int64_t n = a.output_shape(0).cols();
  for (int64_t r = tile.row_begin; r < tile.row_end; ++r) {
    const T* const x = a.input<T>(0) + r * n;
    const auto [shift, log_sum] = rows.log_sum_exp(x, n);
    rows.subtract(x, shift, std::isinf(log_sum) ? 0 : log_sum, a.output<T>(0) + r * n, n);
  }
}

// dx = dy - exp(y) · Σ dy
VarList LogSoftmaxGradient(const GradientArgs& a) {
  const Var dy = a.grad(0);
  return {dy - Exp(a.output(0)) * Sum(dy, -1, true)};
}

VarList ElementaryLogSoftmax(const Attrs&, VarSpan in) {
  const Var shifted = in[0] - Max(in[0], -1, true);
  return {shifted - Log(Sum(Exp(shifted), -1, true))};
}

constexpr OpExample kExamples[] = {
    {.in = "[1]"},      {.in = "[2,3,5]", .low = -3, .high = 3},
    {.in = "[130,17]"}, {.in = "[4,257]", .low = -90, .high = 90},  // overflows without the shift by the maximum
    {.in = "[0,3]"},    {.in = "[]", .error = "rank >= 1"},
};

}  // namespace

constexpr OpDef kSoftmax = RowOp<kSoftmax>({
    .name = "softmax",
    .kernels = {SoftmaxKernel<float>, SoftmaxKernel<double>},
    .gradient = SoftmaxGradient,
    .elementary = ElementarySoftmax,
    .examples = kExamples,
});
Var Softmax(Var x) { return Record(kSoftmax, {x}); }

constexpr OpDef kLogSoftmax = RowOp<kLogSoftmax>({
    .name = "log_softmax",
    .kernels = {LogSoftmaxKernel<float>, LogSoftmaxKernel<double>},
    .gradient = LogSoftmaxGradient,
    .elementary = ElementaryLogSoftmax,
    .examples = kExamples,
});
Var LogSoftmax(Var x) { return Record(kLogSoftmax, {x}); }

}  // namespace weft
