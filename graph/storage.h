// Storage tells which values share bytes, and which operands an op may overwrite.
//
// A view has no bytes of its own: it uses those of its storage root, the value at the start of its chain of views.
#ifndef WEFT_GRAPH_STORAGE_H_
#define WEFT_GRAPH_STORAGE_H_

#include <vector>

#include "absl/types/span.h"
#include "weft/core/program.h"

namespace weft {

// Returns the storage root of each value.
std::vector<ValueId> StorageRoots(const Program& program);
// Reports whether each output element depends only on the input elements at its own position, and is written after
// these are read.
bool IsElementwise(const OpDef& op);
// Reports whether output 0 of `node` may use the bytes of the input that its op can overwrite (OpDef::in_place).
// Nothing else may read that input later. Both must have the same type, and no other operand may use the same bytes.
// Only an elementwise op may read the same value twice: a product would read its own sums as its other factor.
bool MayOverwrite(const Program& program, const Node& node, absl::Span<const ValueId> roots);
// Reports whether the outputs of `node` have at most 1/64 of the bytes that it reads, or at most `small` bytes. Keeping
// such outputs alive longer costs almost nothing.
bool Shrinks(const Program& program, const Node& node, size_t small = 0);

// Returns the smallest rectangle of a value of shape `shape` that covers `rect`, a rectangle of a view of shape `view`.
// If the two have different numbers of columns, the result is whole rows.
Rect ReinterpretRect(const Rect& rect, const Shape& view, const Shape& shape);

// The tiles of a node, which read or write one of its operands.
struct OperandTiles {
  const Node& node;
  size_t operand = 0;  // inputs first, then outputs, as for Access (core/op.h)
  absl::Span<const Rect> tiles;
};
// Reports whether each tile of `inner` accesses only bytes that the same tile of `outer` accesses. Both operands must
// use the same bytes.
bool TileByTile(const Program& program, const OperandTiles& inner, const OperandTiles& outer);

extern const OpDef kCopyOp;  // copies a value; only the compiler records it

}  // namespace weft

#endif  // WEFT_GRAPH_STORAGE_H_
