// These functions tell which values share bytes, and which operands an op may overwrite.
//
// A view has no bytes of its own. It uses the bytes of its storage root, the value at the start of its chain of views.
// The storage root of any other value is the value itself.
#ifndef WEFT_GRAPH_COMPILE_STORAGE_H_
#define WEFT_GRAPH_COMPILE_STORAGE_H_

#include <vector>

#include "absl/types/span.h"
#include "weft/core/program.h"

namespace weft {

// Returns the storage root of each value.
std::vector<ValueId> StorageRoots(const Program& program);
// Reports whether an op that overwrites an input is elementwise. Each output element then depends only on the input
// elements at its own index, and is written after they are read.
bool IsElementwise(const OpDef& op);
// Reports whether output 0 of `node` may overwrite the input OpDef::in_place, if nothing reads this input later. The
// two must have the same type, and no other input may use the same bytes. Only an elementwise op may read the
// overwritten value twice: a product would read its own sums as its other factor.
bool MayOverwrite(const Program& program, const Node& node, absl::Span<const ValueId> roots);
// Reports whether the outputs of `node` have at most 1/64 of the bytes of its inputs, or at most `small` bytes. Keeping
// such outputs alive longer costs almost nothing.
bool Shrinks(const Program& program, const Node& node, size_t small = 0);

// Returns a rectangle of a value of shape `shape` that covers `rect`, a rectangle of a view of shape `view` on the same
// bytes. If the shapes have different numbers of columns, the result is the smallest range of whole rows.
Rect ReinterpretRect(const Rect& rect, const Shape& view, const Shape& shape);

// OperandTiles gives, for each tile of a node, the rectangle of one operand that the tile reads or writes.
class OperandTiles {
 public:
  // `operand`: inputs first, then outputs, as for Access (core/op.h). `node` and `tiles` must outlive this object.
  OperandTiles(const Program& program, const Node& node, size_t operand, absl::Span<const Rect> tiles)
      : node_(node),
        operand_(operand),
        tiles_(tiles),
        inputs_(program.InputTypes(node)),
        outputs_(program.OutputTypes(node)) {}

  size_t size() const { return tiles_.size(); }
  Rect operator[](size_t t) const {
    return Access(*node_.op, {node_.attrs, inputs_, outputs_}, static_cast<int>(operand_), tiles_[t]);
  }
  const Shape& shape() const {
    return operand_ < inputs_.size() ? inputs_[operand_].shape : outputs_[operand_ - inputs_.size()].shape;
  }

 private:
  const Node& node_;
  const size_t operand_;
  const absl::Span<const Rect> tiles_;
  const Types inputs_, outputs_;
};
// Reports whether each tile of `inner` accesses only bytes that the same tile of `outer` accesses. The two operands
// must have the same storage root.
bool TileByTile(const OperandTiles& inner, const OperandTiles& outer);

extern const OpDef kCopyOp;  // copies a value; only the compiler records it

}  // namespace weft

#endif  // WEFT_GRAPH_COMPILE_STORAGE_H_
