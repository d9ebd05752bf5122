// The gradient of layer_norm's y, from (x, gain, mean, rstd, dy). With x̂ = (x - mean) · rstd and h = gain · dy:
//   dx = rstd · (h - mean(h) - x̂ · mean(h · x̂)), along the last axis.
// Two more outputs [blocks, C] are the sums of dy · x̂ and of dy over blocks of 64 rows; their sums are dgain and
// dbias. If x, dy and dx are bf16, the other operands are f32.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "weft/core/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/kernels/rows.h"
#include "weft/ops/ops.h"
#include "weft/ops/reduction/blocks.h"

namespace weft {
namespace {

absl::StatusOr<Types> Infer(const Attrs&, TypeSpan in) {
  if (in[0].shape.rank() < 1) return ShapeError("layer_norm_gradient", "x needs rank >= 1", in);
  const DType computed = ComputedIn(in[0].dtype);
  const TensorType vector = {computed, {in[0].shape.dim(-1)}};
  TensorType statistics = {computed, in[0].shape};
  statistics.shape.set_dim(-1, 1);
  if (in[1] != vector) return ShapeError("layer_norm_gradient", absl::StrCat("gain must be ", ToString(vector)), in);
  if (in[2] != statistics || in[3] != statistics) {
    return ShapeError("layer_norm_gradient", absl::StrCat("mean and rstd must be ", ToString(statistics)), in);
  }
  if (in[4] != in[0]) return ShapeError("layer_norm_gradient", "dy must have x's type", in);
  const TensorType partial = {computed, {BlockCount(in[0].shape.rows(), kSumBlock), in[0].shape.dim(-1)}};
  return Types{in[0], partial, partial};
}

template <class T>
void Kernel(const KernelArgs& a, Rect tile) {
  using C = Computed<T>;
  const int64_t n = a.output_shape(0).cols();
  for (int64_t begin = tile.row_begin; begin < tile.row_end; begin += kSumBlock) {
    C* const dgain = a.output<C>(1) + begin / kSumBlock * n;
    C* const dbias = a.output<C>(2) + begin / kSumBlock * n;
    std::fill_n(dgain, n, C{0});
    std::fill_n(dbias, n, C{0});
    for (int64_t r = begin; r < std::min(begin + kSumBlock, tile.row_end); ++r) {
      Rows<T>().layer_norm_gradient(a.input<T>(0) + r * n, a.input<C>(1), a.input<C>(2)[r], a.input<C>(3)[r],
                                    a.input<T>(4) + r * n, a.output<T>(0) + r * n, dgain, dbias, n);
    }
  }
}

VarList Elementary(const Attrs&, VarSpan in) {
  const Var gain = in[1], mean = in[2], rstd = in[3];
  const Var x = Cast(in[0], gain.dtype()), dy = Cast(in[4], gain.dtype());
  const int64_t rows = x.shape().rows(), n = x.dim(-1);
  const Var normal = (x - mean) * rstd;
  const Var h = dy * gain;
  const Var dx = rstd * (h - Mean(h, -1, true) - normal * Mean(h * normal, -1, true));
  const auto partial = [&](Var terms) {
    const Var by_row = Reshape(terms, {rows, n});
    return rows == 0 ? by_row : SumBlocks(by_row, 0);
  };
  return {Cast(dx, in[0].dtype()), partial(dy * normal), partial(dy)};
}

constexpr OpExample kExamples[] = {
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

}  // namespace

constexpr OpDef kLayerNormGradient = {.name = "layer_norm_gradient",
                                      .infer = Infer,
                                      .outputs = 3,
                                      .kernels = {Kernel<float>, Kernel<double>, Kernel<BF16>},
                                      .cut = Cut::kRows,
                                      .quantum = RowSumsQuantum,
                                      .access = RowSumsAccess,
                                      .in_place = 4,
                                      .elementary = Elementary,
                                      .cost = FlopsPerElement<16>,
                                      .examples = kExamples};

}  // namespace weft
