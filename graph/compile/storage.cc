#include "weft/graph/compile/storage.h"

#include <algorithm>
#include <cstring>

namespace weft {
namespace {

absl::StatusOr<Types> Infer(const Attrs&, TypeSpan in) { return Types{in[0]}; }

void Kernel(const KernelArgs& a, Rect tile) {
  const size_t row = SizeOf(a.outputs[0].type.dtype) * a.output_shape(0).cols();
  std::memcpy(a.outputs[0].data + tile.row_begin * row, a.inputs[0].data + tile.row_begin * row, tile.rows() * row);
}

bool IsInside(const Rect& inner, const Rect& outer) {
  return inner.rows() <= 0 || inner.cols() <= 0 ||
         (inner.row_begin >= outer.row_begin && inner.row_end <= outer.row_end && inner.col_begin >= outer.col_begin &&
          inner.col_end <= outer.col_end);
}

}  // namespace

constexpr OpDef kCopyOp = {.name = "copy",
                           .infer = Infer,
                           .kernels = {Kernel, Kernel, Kernel, Kernel, Kernel},
                           .cut = Cut::kRows,
                           .gradient = [](const GradientArgs& a) { return VarList{a.grad(0)}; }};

std::vector<ValueId> StorageRoots(const Program& program) {
  std::vector<ValueId> roots;
  for (uint32_t v = 0; v < program.values.size(); ++v) roots.push_back(ValueId{v});
  for (const Node& node : program.nodes) {
    if (node.op->view) roots[node.output(0)] = roots[node.inputs[0]];
  }
  return roots;
}

bool IsElementwise(const OpDef& op) { return op.cut == Cut::kBoth && op.workspace == nullptr; }

bool MayOverwrite(const Program& program, const Node& node, absl::Span<const ValueId> roots) {
  if (node.op->in_place < 0) return false;
  const ValueId input = node.inputs[node.op->in_place];
  if (program.value(input).type != program.value(node.output(0)).type) return false;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (static_cast<int>(i) == node.op->in_place || (IsElementwise(*node.op) && node.inputs[i] == input)) continue;
    if (roots[node.inputs[i]] == roots[input]) return false;
  }
  return true;
}

bool Shrinks(const Program& program, const Node& node, size_t small) {
  constexpr size_t kMinShrinking = 64;
  size_t read = 0, written = 0;
  for (ValueId in : node.inputs) read += program.value(in).type.bytes();
  for (ValueId out : node.outputs()) written += program.value(out).type.bytes();
  return written <= std::max(small, read / kMinShrinking);
}

Rect ReinterpretRect(const Rect& rect, const Shape& view, const Shape& shape) {
  if (view.cols() == shape.cols() || rect.rows() == 0 || rect.cols() == 0) return rect;
  const int64_t begin = rect.row_begin * view.cols() + rect.col_begin;
  const int64_t last = (rect.row_end - 1) * view.cols() + rect.col_end - 1;
  return {begin / shape.cols(), last / shape.cols() + 1, 0, shape.cols()};
}

bool TileByTile(const OperandTiles& inner, const OperandTiles& outer) {
  for (size_t t = 0; t < inner.size(); ++t) {
    if (!IsInside(ReinterpretRect(inner[t], inner.shape(), outer.shape()), outer[t])) return false;
  }
  return true;
}

}  // namespace weft
