// These passes rewrite two neighbouring nodes to one, or to none.
#include <utility>

#include "weft/graph/compile/passes/passes.h"
#include "weft/graph/compile/passes/pattern.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/attributes.h"
#include "weft/ops/product/matmul.h"

namespace weft {
namespace {

// Rewrite permute(permute(x)) to permute(x), or to x
// RaiseAttention permutes the result of `attention` to [B, H, T, width], as the raised pattern did, and models permute
// it back at once. Together, the two move nothing.
VarList ToOnePermute(PatternRewriter& r, const Node& outer) {
  const ValueId between = SkipReshapes(r, outer.inputs[0]);
  const Node& inner = r.producer(between);
  if (r.uses().differentiated_by(between) || r.uses().differentiated_by(outer.output(0))) return {};
  if (inner.op != &kPermute || r.type(between) != r.type(outer.inputs[0])) return {};
  const PermuteAttrs a = inner.attrs.as<PermuteAttrs>(), b = outer.attrs.as<PermuteAttrs>();
  PermuteAttrs both = {.rank = b.rank};
  bool identity = true;
  for (int i = 0; i < b.rank; ++i) {
    both.axes[i] = a.axes[b.axes[i]];
    identity = identity && both.axes[i] == i;
  }
  const Var x = r.Now(inner.inputs[0]);
  return {identity ? x : Record(kPermute, {x}, Attrs::Of(both))};
}

}  // namespace

absl::Status MergePermutes(Rewrite& rewrite) { return RewritePatterns(rewrite, {{&kPermute, nullptr, ToOnePermute}}); }

// Rewrite add(w, embedding_gradient(dy, ids)) to embedding_gradient_add(w, dy, ids), in either order, where both have
// the sum's type and only this sum reads the embedding's gradient
// A table that is also the weight of a tied head has two gradients. The embedding's gradient is zero except in the rows
// of the batch's tokens, so writing all its rows would waste time.
absl::Status ScatterRows(Rewrite& rewrite) {
  Program& program = rewrite.program;
  const Uses uses(rewrite);
  for (Node& node : program.nodes) {
    if (node.op != &kAdd) continue;
    const TensorType type = program.value(node.output(0)).type;
    for (const auto& [w, gradient] : {std::pair(0, 1), std::pair(1, 0)}) {
      const Node& embedding = program.producer(node.inputs[gradient]);
      if (embedding.op != &kEmbeddingGradient || !uses.OnlyOne(node.inputs[gradient]) ||
          program.value(node.inputs[w]).type != type || program.value(node.inputs[gradient]).type != type) {
        continue;
      }
      node.inputs = {node.inputs[w], embedding.inputs[0], embedding.inputs[1]};
      node.op = &kEmbeddingGradientAdd;
      break;
    }
  }
  return absl::OkStatus();
}

// Rewrite cast(cast(x)) to x, from bf16 to f32 and back or from f32 to bf16 and back
// Rewrite cast(matmul(a, b)), from bf16 to f32, to an f32 matmul(a, b), if only the cast reads the product
// Autocast and gradients insert casts between an op's output and the next op's input. Most pairs of casts come from
// gradients, so the pass runs after they are expanded.
absl::Status FoldCasts(Rewrite& rewrite) {
  if (rewrite.options.precision != kBF16) return absl::OkStatus();
  Program& program = rewrite.program;
  const Uses uses(rewrite);
  Renames renames(program);
  for (Node& node : program.nodes) {
    renames.Apply(node);
    if (node.op != &kCast) continue;
    const ValueId input = node.inputs[0], output = node.output(0);
    const DType to = program.value(output).type.dtype, from = program.value(input).type.dtype;
    if (!(to == kF32 && from == kBF16) && !(to == kBF16 && from == kF32)) continue;
    Node& before = program.node(program.value(input).producer);
    if (before.op == &kCast && program.value(before.inputs[0]).type.dtype == to) {
      renames.Rename(output, before.inputs[0]);
    } else if (before.op == &kMatmul && to == kF32 && uses.OnlyOne(input)) {
      MatMulAttrs attrs = before.attrs.as<MatMulAttrs>();
      attrs.f32_output = true;
      before.attrs = Attrs::Of(attrs);
      program.values[input].type.dtype = kF32;
      renames.Rename(output, input);
    }
  }
  renames.Apply(rewrite.roots);
  return DropDead(rewrite);
}

}  // namespace weft
