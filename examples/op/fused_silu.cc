// y = x · σ(x), where σ(x) = 1 / (1 + exp(-x)). docs/add_an_op.md of Weft explains each piece.
#include "fused_silu.h"

#include <cmath>

namespace my_op {
namespace {

absl::StatusOr<weft::Types> Infer(const weft::Attrs&, weft::TypeSpan in) {
  if (in.size() != 1) return weft::ShapeError("fused_silu", "takes one input", in);
  return weft::Types{in[0]};
}

template <class T>
void Kernel(const weft::KernelArgs& a, weft::Rect tile) {
  const int64_t cols = a.output_shape(0).cols();
  for (int64_t row = tile.row_begin; row < tile.row_end; ++row) {
    const T* const x = a.input<T>(0) + row * cols;
    T* const y = a.output<T>(0) + row * cols;
    for (int64_t col = tile.col_begin; col < tile.col_end; ++col) y[col] = x[col] / (1 + std::exp(-x[col]));
  }
}

// dx = dy · σ(x) · (1 + x · (1 - σ(x))). Needs x only.
weft::VarList Gradient(const weft::GradientArgs& a) {
  const weft::Var x = a.input(0), sigmoid = 1.0 / (1.0 + Exp(-x));
  return {a.grad(0) * sigmoid * (1.0 + x * (1.0 - sigmoid))};
}

weft::VarList Elementary(const weft::Attrs&, weft::VarSpan in) { return {in[0] / (1.0 + Exp(-in[0]))}; }

constexpr weft::OpExample kExamples[] = {
    {.in = "[]"},
    {.in = "[3,37]", .low = -3, .high = 3, .out = "[3,37]"},
    {.in = "[2,3,65]"},
    {.in = "[0,4]"},
    {.in = "[257]", .low = -90, .high = 90, .check_gradient = false},  // differences round too coarsely
    {.in = "[2] [2]", .error = "takes one input"},
    {.in = "i32[2]", .error = "not defined for i32"},
};

}  // namespace

constexpr weft::OpDef kFusedSilu = {.name = "fused_silu",
                                    .infer = Infer,
                                    .kernels = {Kernel<float>, Kernel<double>},
                                    .cut = weft::Cut::kBoth,
                                    .in_place = 0,
                                    .gradient = Gradient,
                                    .elementary = Elementary,
                                    .cost = weft::FlopsPerElement<10>,
                                    .examples = kExamples};
weft::Var FusedSilu(weft::Var x) { return weft::Record(kFusedSilu, {x}); }

}  // namespace my_op
