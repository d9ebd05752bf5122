// y[..., i] = Σ_{j ≤ i} x[..., j], added in the order of j; reversed, Σ_{j ≥ i}, added from the end.
#include "weft/ops/all_ops.h"
#include "weft/ops/attributes.h"
#include "weft/ops/kernels/rows/elementwise.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

template <class T>
void Kernel(const KernelArgs& a, Rect tile) {
  const int64_t n = a.output_shape(0).cols();
  const bool reverse = a.attrs.as<CumulativeSumAttrs>().reverse;
  for (int64_t row = tile.row_begin; row < tile.row_end; ++row) {
    const T* const x = a.input<T>(0) + row * n;
    T* const y = a.output<T>(0) + row * n;
    std::conditional_t<std::is_same_v<T, float>, double, T> sum = 0;  // f32 would lose digits in a long row
    for (int64_t i = 0; i < n; ++i) {
      const int64_t at = reverse ? n - 1 - i : i;
      sum += x[at];
      y[at] = static_cast<T>(sum);
    }
  }
}

// dx[i] = Σ_{j ≥ i} dy[j].
VarList Gradient(const GradientArgs& a) {
  return {CumulativeSum(a.grad(0), !a.attrs.as<CumulativeSumAttrs>().reverse)};
}

void Reference(const ReferenceArgs& a) {
  const size_t n = static_cast<size_t>(a.input_types[0].shape.cols()), size = a.outputs[0].size();
  const bool reverse = a.attrs.as<CumulativeSumAttrs>().reverse;
  for (size_t e = 0; e < size; ++e) {
    const size_t at = reverse ? size - 1 - e : e;
    a.outputs[0][at] = a.inputs[0][at] + (e % n == 0 ? 0 : a.outputs[0][reverse ? at + 1 : at - 1]);
  }
}

VarList Reversed(VarSpan in) { return {CumulativeSum(in[0], /*reverse=*/true)}; }

constexpr OpExample kExamples[] = {
    {.in = "[1]"},
    {.in = "[3,5]"},
    {.in = "[2,37,67]", .tolerance = 1e-5},
    {.in = "[2,37,67]", .record = Reversed, .tolerance = 1e-5},
    {.in = "i32[4,9]", .below = 5},
    {.in = "i32[4,9]", .record = Reversed, .below = 5},
    {.in = "[0,3]"},
    {.in = "[3,0]"},
    {.in = "[]", .error = "x needs rank >= 1"},
    {.in = "bool[3]", .error = "not defined for bool"},
};

}  // namespace

constexpr OpDef kCumulativeSum = {.name = "cumulative_sum",
                                  .infer = InferRows<kCumulativeSum>,
                                  .kernels = {Kernel<float>, Kernel<double>, nullptr, Kernel<int32_t>},
                                  .cut = Cut::kRows,
                                  .in_place = 0,
                                  .gradient = Gradient,
                                  .reference = Reference,
                                  .attrs = AttrOpsOf<CumulativeSumAttrs>(),
                                  .examples = kExamples};
Var CumulativeSum(Var x, bool reverse) {
  return Record(kCumulativeSum, {x}, Attrs::Of(CumulativeSumAttrs{.reverse = reverse}));
}

}  // namespace weft
