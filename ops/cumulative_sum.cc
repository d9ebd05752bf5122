// ops/cumulative_sum.cc: y[..., i] = Σ_{j ≤ i} x[..., j], in that order.
#include "weft/core/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/kernels/elementwise.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

absl::StatusOr<Types> Infer(const Attrs&, TypeSpan in) {
  if (in[0].shape.rank() < 1) return ShapeError("cumulative_sum", "x needs rank >= 1", in);
  return Types{in[0]};
}

template <class T>
void Kernel(const KernelArgs& a, Rect tile) {
  const int64_t n = a.output_shape(0).cols();
  for (int64_t row = tile.row_begin; row < tile.row_end; ++row) {
    T sum = 0;
    for (int64_t i = row * n; i < (row + 1) * n; ++i) a.output<T>(0)[i] = sum += a.input<T>(0)[i];
  }
}

// dx[i] = Σ_{j ≥ i} dy[j]: of all, less those before.
VarList Gradient(const GradientArgs& a) {
  const Var dy = a.grad(0);
  return {Sum(dy, -1, /*keep=*/true) - CumulativeSum(dy) + dy};
}

void Reference(const ReferenceArgs& a) {
  const int64_t n = a.input_types[0].shape.cols();
  for (size_t e = 0; e < a.outputs[0].size(); ++e) {
    a.outputs[0][e] = a.inputs[0][e] + (e % n == 0 ? 0 : a.outputs[0][e - 1]);
  }
}

constexpr OpExample kExamples[] = {
    {.in = "[1]"},
    {.in = "[3,5]"},
    {.in = "[2,37,67]", .tolerance = 1e-5},
    {.in = "i32[4,9]", .below = 5},
    {.in = "[0,3]"},
    {.in = "[3,0]"},
    {.in = "[]", .error = "x needs rank >= 1"},
    {.in = "bool[3]", .error = "not defined for bool"},
};

}  // namespace

constexpr OpDef kCumulativeSum = {.name = "cumulative_sum",
                                  .infer = Infer,
                                  .kernels = {Kernel<float>, Kernel<double>, nullptr, Kernel<int32_t>},
                                  .cut = Cut::kRows,
                                  .in_place = 0,
                                  .gradient = Gradient,
                                  .reference = Reference,
                                  .examples = kExamples};
Var CumulativeSum(Var x) { return Record(kCumulativeSum, {x}); }

}  // namespace weft
