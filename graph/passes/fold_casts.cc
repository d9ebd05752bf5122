#include "weft/graph/passes/passes.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/product/matmul.h"

namespace weft {

// Of a program in bf16, when its gradients are there:
// Rewrite cast(cast(x)) to x, from bf16 to f32 and back, or from f32 to bf16 and back: nobody asked for that rounding.
// Rewrite cast(matmul(a, b)) from bf16 to f32 to matmul(a, b) in f32, where nothing else reads the product.
absl::Status FoldCasts(Rewrite& rewrite) {
  if (rewrite.precision != kBF16) return absl::OkStatus();
  Program& program = rewrite.program;
  std::vector<uint32_t> readers(program.values.size(), 0);
  for (const Node& node : program.nodes) {
    for (ValueId in : node.inputs) ++readers[static_cast<uint32_t>(in)];
  }
  for (ValueId root : rewrite.roots) ++readers[static_cast<uint32_t>(root)];

  std::vector<ValueId> now(program.values.size());
  for (uint32_t v = 0; v < now.size(); ++v) now[v] = ValueId{v};
  const auto resolve = [&](ValueId& id) { id = now[static_cast<uint32_t>(id)]; };
  for (Node& node : program.nodes) {
    for (ValueId& in : node.inputs) resolve(in);
    if (node.op != &kCast) continue;
    const DType to = program.value(node.output(0)).type.dtype, from = program.value(node.inputs[0]).type.dtype;
    if (!(to == kF32 && from == kBF16) && !(to == kBF16 && from == kF32)) continue;
    Node& before = program.node(program.value(node.inputs[0]).producer);
    ValueId& result = now[static_cast<uint32_t>(node.output(0))];
    if (before.op == &kCast && program.value(before.inputs[0]).type.dtype == to) {
      result = before.inputs[0];
    } else if (before.op == &kMatmul && to == kF32 && readers[static_cast<uint32_t>(node.inputs[0])] == 1) {
      MatMulAttrs attrs = before.attrs.as<MatMulAttrs>();
      attrs.f32_output = true;
      before.attrs = Attrs::Of(attrs);
      program.values[static_cast<uint32_t>(node.inputs[0])].type.dtype = kF32;
      result = node.inputs[0];
    }
  }
  for (ValueId& root : rewrite.roots) resolve(root);
  return DropDead(rewrite);
}

}  // namespace weft
