#include "weft/graph/storage.h"

#include <algorithm>
#include <cstring>

namespace weft {
namespace {

absl::StatusOr<Types> Infer(const Attrs&, TypeSpan in) { return Types{in[0]}; }

void Kernel(const KernelArgs& a, Rect tile) {
  const size_t row = SizeOf(a.outputs[0].type.dtype) * a.output_shape(0).cols();
  std::memcpy(a.outputs[0].data + tile.row_begin * row, a.inputs[0].data + tile.row_begin * row, tile.rows() * row);
}

bool IsInside(const Rect& part, const Rect& whole) {
  return part.rows() <= 0 || part.cols() <= 0 ||
         (part.row_begin >= whole.row_begin && part.row_end <= whole.row_end && part.col_begin >= whole.col_begin &&
          part.col_end <= whole.col_end);
}

struct Operands {
  Operands(const Program& program, const OperandTiles& t)
      : touches(t), inputs(program.InputTypes(t.node)), outputs(program.OutputTypes(t.node)) {}

  const Shape& shape() const {
    return touches.operand < inputs.size() ? inputs[touches.operand].shape
                                           : outputs[touches.operand - inputs.size()].shape;
  }
  Rect Touched(size_t tile) const {
    return Access(*touches.node.op, {touches.node.attrs, inputs, outputs}, static_cast<int>(touches.operand),
                  touches.tiles[tile]);
  }

  const OperandTiles& touches;
  const Types inputs, outputs;
};

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
    if (node.op->view) roots[static_cast<size_t>(node.output(0))] = roots[static_cast<size_t>(node.inputs[0])];
  }
  return roots;
}

bool IsElementwise(const OpDef& op) { return op.cut == Cut::kBoth && op.prepare == nullptr; }

bool MayOverwrite(const Program& program, const Node& node, absl::Span<const ValueId> roots) {
  if (node.op->in_place < 0) return false;
  const ValueId input = node.inputs[static_cast<size_t>(node.op->in_place)];
  if (program.value(input).type != program.value(node.output(0)).type) return false;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (static_cast<int>(i) == node.op->in_place || (IsElementwise(*node.op) && node.inputs[i] == input)) continue;
    if (roots[static_cast<size_t>(node.inputs[i])] == roots[static_cast<size_t>(input)]) return false;
  }
  return true;
}

bool Shrinks(const Program& program, const Node& node, size_t small) {
  constexpr size_t kTimes = 64;
  size_t read = 0, made = 0;
  for (ValueId in : node.inputs) read += program.value(in).type.bytes();
  for (uint32_t i = 0; i < node.output_count; ++i) made += program.value(node.output(i)).type.bytes();
  return made <= std::max(small, read / kTimes);
}

Rect ReinterpretRect(const Rect& rect, const Shape& view, const Shape& shape) {
  if (view.cols() == shape.cols() || rect.rows() == 0 || rect.cols() == 0) return rect;
  const int64_t begin = rect.row_begin * view.cols() + rect.col_begin;
  const int64_t last = (rect.row_end - 1) * view.cols() + rect.col_end - 1;
  return {begin / shape.cols(), last / shape.cols() + 1, 0, shape.cols()};
}

bool TileByTile(const Program& program, const OperandTiles& inner, const OperandTiles& outer) {
  const Operands in(program, inner), out(program, outer);
  for (size_t t = 0; t < inner.tiles.size(); ++t) {
    const Rect part = ReinterpretRect(in.Touched(t), in.shape(), out.shape()), whole = out.Touched(t);
    if (!IsInside(part, whole)) return false;
  }
  return true;
}

}  // namespace weft
