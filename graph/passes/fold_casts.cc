// In precision bf16, this pass removes casts that no op needs. Autocast and gradients insert casts between an op's
// output and the next op's input. Two casts often undo each other, and a product can write f32 itself. The pass runs
// after gradients are expanded, because most pairs of casts come from gradients.
#include "weft/graph/passes/passes.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/product/matmul.h"

namespace weft {

// Rewrite cast(cast(x)) to x, from bf16 to f32 and back or from f32 to bf16 and back
// Rewrite cast(matmul(a, b)), from bf16 to f32, to an f32 matmul(a, b), where nothing else reads the product
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
