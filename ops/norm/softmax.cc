// y[i] = exp(x[i] - max x) / Σ_j exp(x[j] - max x), along the last axis. A row of only -inf, in which all is masked,
// gives zeros.
#include "weft/core/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/kernels/rows.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

absl::StatusOr<Types> Infer(const Attrs&, TypeSpan in) {
  if (in[0].shape.rank() < 1) return ShapeError("softmax", "x needs rank >= 1", in);
  return Types{in[0]};
}

template <class T>
void Kernel(const KernelArgs& a, Rect tile) {
  const int64_t n = a.output_shape(0).cols();
  for (int64_t r = tile.row_begin; r < tile.row_end; ++r) {
    Rows<T>().softmax(a.input<T>(0) + r * n, a.output<T>(0) + r * n, n);
  }
}

// dx = y · (dy - Σ dy · y). The gradient reads y only, so x can be freed after the forward pass.
VarList Gradient(const GradientArgs& a) {
  const Var y = a.output(0), dy = a.grad(0);
  return {y * (dy - Sum(dy * y, -1, true))};
}

VarList Elementary(const Attrs&, VarSpan in) {
  const Var e = Exp(in[0] - Max(in[0], -1, true));
  return {e / Sum(e, -1, true)};
}

constexpr OpExample kExamples[] = {
    {.in = "[1]"},      {.in = "[2,3,5]", .low = -3, .high = 3},
    {.in = "[130,17]"}, {.in = "[4,257]", .low = -90, .high = 90},  // overflows without the shift by the maximum
    {.in = "[0,3]"},    {.in = "[]", .error = "rank >= 1"},
};

}  // namespace

constexpr OpDef kSoftmax = {.name = "softmax",
                            .infer = Infer,
                            .kernels = {Kernel<float>, Kernel<double>},
                            .cut = Cut::kRows,
                            .in_place = 0,
                            .gradient = Gradient,
                            .elementary = Elementary,
                            .cost = FlopsPerElement<8>,
                            .examples = kExamples};

Var Softmax(Var x) { return Record(kSoftmax, {x}); }

}  // namespace weft
