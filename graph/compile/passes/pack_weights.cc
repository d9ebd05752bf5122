// Packs weights for products. A product of matrices first copies its right factor into panels, in the order in which
// its kernel reads, and repeats this in every tile. This pass makes the copy a node of its own. The node runs once per
// execution and serves all tiles of all products of the weight. In inference few products share a weight, and products
// of fewer than kMinRowsInEval rows are not cut by rows. They pack a weight in their tiles, where it stays in the
// cache.
#include "weft/base/status.h"
#include "weft/graph/compile/passes/passes.h"
#include "weft/graph/compile/passes/pattern.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/ops.h"
#include "weft/ops/product/matmul.h"
#include "weft/ops/product/pack.h"
#include "weft/ops/product/weight_matmul.h"

namespace weft {
namespace {

constexpr int64_t kMinRows = 512;  // rows of a product: with fewer, packing costs more than it saves
constexpr int64_t kMinRowsInEval = 2 * kProductTileRows;  // with fewer, a product is not cut by rows
constexpr int64_t kMinWeightAxis = 64;  // rows and columns of a weight: a weight of 64 x 64 fits in L1

// Rewrite matmul(a, w) to packed_matmul(a, pack(w)), where w is an f32 parameter that the product transposes
// Rewrite matmul(a, cast(w)) to packed_matmul(a, pack(w)), where w is an f32 parameter and pack rounds it to bf16
// Products of fewer than kMinRows rows or with small weights stay. So do bf16 products if the CPU has none.
VarList PackWeight(PatternRewriter& r, const Node& matmul) {
  const MatMulAttrs attrs = matmul.attrs.as<MatMulAttrs>();
  const TensorType &a = r.type(matmul.inputs[0]), &b = r.type(matmul.inputs[1]);
  ValueId weight = matmul.inputs[1];
  if (b.dtype == kBF16 && r.producer(weight).op == &kCast) weight = r.producer(weight).inputs[0];
  if (r.producer(weight).op != &kParameterOp || r.type(weight).dtype != kF32) return {};
  if (attrs.transpose_a || b.shape.rank() != 2 || b.shape.dim(0) < kMinWeightAxis || b.shape.dim(1) < kMinWeightAxis)
    return {};
  const bool tiles_pack = b.dtype == kF32 && r.options().mode == kEval;
  if (a.shape.rows() < (tiles_pack ? kMinRowsInEval : kMinRows)) return {};
  if (b.dtype == kF32 && !attrs.transpose_b) return {};
  if (b.dtype == kBF16 && !HasBF16Products()) return {};
  const int64_t cols = b.shape.dim(attrs.transpose_b ? 0 : 1);
  const Var panels = Pack(r.Now(weight), attrs.transpose_b, b.dtype);
  return {PackedMatMul(r.Now(matmul.inputs[0]), panels, cols, attrs.f32_output)};
}

// Rewrite weight_matmul(a, w) to packed_matmul(a, pack(w)), where a has more than CompileOptions::few_rows rows
// Rewrite weight_matmul(a, w) to matmul(cast(a), wᵀ), where the tiles of the product would pack w in bf16
// If the CPU multiplies bf16, a is rounded to bf16, and pack gives bf16. Weights for which FastWithManyRows() is true
// stay.
VarList PackStoredWeight(PatternRewriter& r, const Node& matmul) {
  const TensorType &a = r.type(matmul.inputs[0]), &w = r.type(matmul.inputs[1]);
  if (a.shape.rows() <= r.options().few_rows || FastWithManyRows(w.dtype)) return {};
  const DType dtype = HasBF16Products() ? kBF16 : kF32;
  const Var input = Cast(r.Now(matmul.inputs[0]), dtype), weight = r.Now(matmul.inputs[1]);
  if (w.dtype == kBF16 && dtype == kBF16 && a.shape.rows() < kMinRowsInEval) {
    return {MatMul(input, weight, {.transpose_b = true, .f32_output = true})};
  }
  return {PackedMatMul(input, Pack(weight, /*transposed=*/true, dtype), w.shape.dim(0), /*f32_output=*/true)};
}

}  // namespace

absl::Status PackWeights(Rewrite& rewrite) {
  WEFT_RETURN_IF_ERROR(
      RewritePatterns(rewrite, {{&kMatmul, nullptr, PackWeight}, {&kWeightMatmul, nullptr, PackStoredWeight}}));
  WEFT_RETURN_IF_ERROR(ShareCommon(rewrite, &kPack));
  return DropDead(rewrite);
}

}  // namespace weft
