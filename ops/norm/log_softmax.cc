// y[i] = x[i] - log Σ_j exp(x[j]), along the last axis. A row whose elements are all -inf stays as it is.
#include <cmath>

#include "weft/core/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/kernels/rows.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

absl::StatusOr<Types> Infer(const Attrs&, TypeSpan in) {
  if (in[0].shape.rank() < 1) return ShapeError("log_softmax", "x needs rank >= 1", in);
  return Types{in[0]};
}

template <class T>
void Kernel(const KernelArgs& a, Rect tile) {
  const RowKernels<T>& rows = Rows<T>();
  const int64_t n = a.output_shape(0).cols();
  for (int64_t r = tile.row_begin; r < tile.row_end; ++r) {
    const T* const x = a.input<T>(0) + r * n;
    const auto [shift, log_sum] = rows.log_sum_exp(x, n);
    rows.subtract(x, shift, std::isinf(log_sum) ? 0 : log_sum, a.output<T>(0) + r * n, n);
  }
}

// dx = dy - exp(y) · Σ dy
VarList Gradient(const GradientArgs& a) {
  const Var dy = a.grad(0);
  return {dy - Exp(a.output(0)) * Sum(dy, -1, true)};
}

VarList Elementary(const Attrs&, VarSpan in) {
  const Var shifted = in[0] - Max(in[0], -1, true);
  return {shifted - Log(Sum(Exp(shifted), -1, true))};
}

constexpr OpExample kExamples[] = {
    {.in = "[1]"},      {.in = "[2,3,5]", .low = -3, .high = 3},
    {.in = "[130,17]"}, {.in = "[4,257]", .low = -90, .high = 90},  // overflows without the shift by the maximum
    {.in = "[0,3]"},    {.in = "[]", .error = "rank >= 1"},
};

}  // namespace

constexpr OpDef kLogSoftmax = {.name = "log_softmax",
                               .infer = Infer,
                               .kernels = {Kernel<float>, Kernel<double>},
                               .cut = Cut::kRows,
                               .in_place = 0,
                               .gradient = Gradient,
                               .elementary = Elementary,
                               .cost = FlopsPerElement<8>,
                               .examples = kExamples};

Var LogSoftmax(Var x) { return Record(kLogSoftmax, {x}); }

}  // namespace weft
