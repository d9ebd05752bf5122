#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "weft/core/status.h"
#include "weft/graph/passes/passes.h"
#include "weft/graph/passes/pattern.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/ops.h"
#include "weft/ops/product/matmul.h"
#include "weft/ops/product/pack.h"

namespace weft {
namespace {

constexpr int64_t kEnoughRows = 512;  // rows of a product from which on packing pays
constexpr int64_t kLeast = 64;        // of a weight's rows and columns

// Rewrite matmul(a, w) to packed_matmul(a, pack(w)), and the cast of w to bf16 between them to a pack to bf16, where w
// is a weight in f32 and a has so many rows that the product gains more than the pack costs. Left alone: few rows,
// small weights, and in f32 a weight that lies as the product reads it.
VarList PackWeight(PatternRewriter& r, const Node& matmul) {
  const MatMulAttrs attrs = matmul.attrs.as<MatMulAttrs>();
  const TensorType &a = r.type(matmul.inputs[0]), &b = r.type(matmul.inputs[1]);
  ValueId weight = matmul.inputs[1];
  if (b.dtype == kBF16 && r.producer(weight).op == &kCast) weight = r.producer(weight).inputs[0];
  if (r.producer(weight).op != &kParameterOp || r.type(weight).dtype != kF32) return {};
  if (attrs.transpose_a || b.shape.rank() != 2 || b.shape.dim(0) < kLeast || b.shape.dim(1) < kLeast) return {};
  if (a.shape.rows() < kEnoughRows) return {};
  if (b.dtype == kF32 && !attrs.transpose_b) return {};
  if (b.dtype == kBF16 && !PacksBF16()) return {};
  const int64_t cols = b.shape.dim(attrs.transpose_b ? 0 : 1);
  const Var panels = Pack(r.Now(weight), attrs.transpose_b, b.dtype);
  return {PackedMatMul(r.Now(matmul.inputs[0]), panels, cols, attrs.f32_output)};
}

// Rewrite two packs of one weight to one.
void SharePacks(Rewrite& rewrite) {
  Program& program = rewrite.program;
  absl::flat_hash_map<ValueId, absl::InlinedVector<ValueId, 2>> packs;  // of a weight: one for each kind
  absl::flat_hash_map<ValueId, ValueId> first;
  for (Node& node : program.nodes) {
    for (ValueId& in : node.inputs) {
      const auto found = first.find(in);
      if (found != first.end()) in = found->second;
    }
    if (node.op != &kPack) continue;
    auto& known = packs[node.inputs[0]];
    const auto same = std::find_if(known.begin(), known.end(), [&](ValueId id) {
      return kPack.attrs.equal(program.producer(id).attrs, node.attrs);
    });
    same == known.end() ? known.push_back(node.output(0)) : void(first[node.output(0)] = *same);
  }
}

}  // namespace

absl::Status PackWeights(Rewrite& rewrite) {
  WEFT_RETURN_IF_ERROR(RewritePatterns(rewrite, {{&kMatmul, nullptr, PackWeight}}));
  SharePacks(rewrite);
  return DropDead(rewrite);
}

}  // namespace weft
