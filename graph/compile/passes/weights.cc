// These passes choose how products read their weights.
//
// StoreWeights stores weights in CompileOptions::weights, and gives products of few rows their own op. A tape records
// weights in f32. The pass changes the dtype of parameters, and replaces the ops that read them. It stores a weight in
// the dtype that CompileOptions::stored or, with HeldDType, CompileOptions::weights gives, if all of its readers are
// products and embeddings. The number of rows of a product has no influence on this choice, nor has the kind of the
// readers. So graphs for prompts and for single tokens can share their parameters, and so can an encoder, which only
// looks up a table, and a decoder, which also multiplies it.
//
// PackWeights packs weights for products. A product of matrices first copies its right factor into panels, in the order
// in which its kernel reads, and repeats this in every tile. The pass makes the copy a node of its own. The node runs
// once per execution and serves all tiles of all products of the weight. In inference few products share a weight, and
// products of fewer than kMinRowsInEval rows are not cut by rows. They pack a weight in their tiles, where it stays in
// the cache.
#include "weft/base/status.h"
#include "weft/graph/compile/passes/passes.h"
#include "weft/graph/compile/passes/pattern.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/attributes.h"
#include "weft/ops/ops.h"
#include "weft/ops/product/matmul.h"

namespace weft {
namespace {

// Reports whether `node` is an f32 product a wᵀ, where w has rank 2 and is a parameter, or rows of a parameter.
bool IsWeightProduct(const Program& program, const Node& node) {
  if (node.op != &kMatmul) return false;
  const MatMulAttrs attrs = node.attrs.as<MatMulAttrs>();
  const TensorType &a = program.value(node.inputs[0]).type, &w = program.value(node.inputs[1]).type;
  const Node* source = &program.producer(node.inputs[1]);
  if (source->op == &kEmbedding) source = &program.producer(source->inputs[0]);
  return !attrs.transpose_a && attrs.transpose_b && a.dtype == kF32 && w.shape.rank() == 2 &&
         source->op == &kParameterOp;
}

// Returns the dtype in which a weight is stored.
DType StoredDType(const Rewrite& rewrite, ParameterSpec spec) {
  const auto found = rewrite.options.stored.find(spec.name);
  if (found == rewrite.options.stored.end()) return HeldDType(spec, rewrite.options.weights);
  spec.least = found->second;
  return HeldDType(spec, found->second);
}

// Returns for each value whether it is a weight that is stored in another dtype.
std::vector<bool> StoredWeights(const Rewrite& rewrite) {
  const Program& program = rewrite.program;
  std::vector<bool> stored(program.values.size(), false);
  if (rewrite.options.weights == kF32 && rewrite.options.stored.empty()) return stored;
  for (const Node& node : program.nodes) {
    if (node.op != &kParameterOp) continue;
    const ParameterSpec& spec = program.parameter(node);
    stored[node.output(0)] = StoredDType(rewrite, spec) != spec.type.dtype;
  }
  for (const Node& node : program.nodes) {
    const bool product = IsWeightProduct(program, node);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const bool fits = product ? i == 1 : node.op == &kEmbedding && i == 0;
      if (!fits) stored[node.inputs[i]] = false;
    }
  }
  for (ValueId root : rewrite.roots) stored[root] = false;
  return stored;
}

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

// Rewrite matmul(a, wᵀ) to weight_matmul(a, w), where a has few rows or w is stored
// w is a parameter, or rows of a parameter that an embedding looks up
//
// Rewrite embedding(w, ids) to embedding(w, ids) in f32, where w is stored
absl::Status StoreWeights(Rewrite& rewrite) {
  Program& program = rewrite.program;
  const std::vector<bool> stored = StoredWeights(rewrite);
  for (Node& node : program.nodes) {
    if (node.op == &kParameterOp && stored[node.output(0)]) {
      SourceAttrs attrs = node.attrs.as<SourceAttrs>();
      ParameterSpec& spec = program.parameters[attrs.index];
      spec.type.dtype = StoredDType(rewrite, spec);
      attrs.type.dtype = program.values[node.output(0)].type.dtype = spec.type.dtype;
      node.attrs = Attrs::Of(attrs);
    } else if (node.op == &kEmbedding && stored[node.inputs[0]]) {
      node.attrs = Attrs::Of(EmbeddingAttrs{.widened = true});
    } else if (IsWeightProduct(program, node)) {
      const int64_t rows = program.value(node.inputs[0]).type.shape.rows();
      const bool few_rows = rewrite.options.mode == kEval && rows <= rewrite.options.few_rows;
      if (!few_rows && !stored[node.inputs[1]]) continue;
      node.op = &kWeightMatmul;
      node.attrs = {};
    }
  }
  return absl::OkStatus();
}

absl::Status PackWeights(Rewrite& rewrite) {
  WEFT_RETURN_IF_ERROR(
      RewritePatterns(rewrite, {{&kMatmul, nullptr, PackWeight}, {&kWeightMatmul, nullptr, PackStoredWeight}}));
  WEFT_RETURN_IF_ERROR(ShareCommon(rewrite, &kPack));
  return DropDead(rewrite);
}

}  // namespace weft
