// Whose bytes a value uses: views share those of what they view.
#ifndef WEFT_GRAPH_STORAGE_H_
#define WEFT_GRAPH_STORAGE_H_

#include <vector>

#include "absl/types/span.h"
#include "weft/core/program.h"

namespace weft {

// By value: the one at the start of the chain of views that it ends.
std::vector<ValueId> StorageRoots(const Program& program);
// Whether each element of what the op writes depends on the elements in its place only, read before it is written.
bool IsElementwise(const OpDef& op);
// Whether output 0 of a node may have the bytes of the input that its op may overwrite (OpDef::in_place), if nothing
// else needs them: they have one type, and no other operand is in the same bytes. A second reading of the same value is
// fine for an elementwise op only: a product would find sums in its factor.
bool MayOverwrite(const Program& program, const Node& node, absl::Span<const ValueId> roots);
// Whether a node makes so little of what it reads, or no more than `small` bytes, that it may well live longer.
bool Shrinks(const Program& program, const Node& node, size_t small = 0);

// What a rectangle of a value seen as `view` touches of the same bytes seen as `shape`: more, where the columns differ.
Rect ReinterpretRect(const Rect& rect, const Shape& view, const Shape& shape);

// What the tiles of a node touch of one operand, of those that Access counts.
struct OperandTiles {
  const Node& node;
  size_t operand = 0;
  absl::Span<const Rect> tiles;
};
// Whether each tile of `inner` touches nothing that the same tile of `outer` doesn't. Both operands are the same bytes.
bool TileByTile(const Program& program, const OperandTiles& inner, const OperandTiles& outer);

extern const OpDef kCopyOp;  // the compiler's own: the same bytes in another place

}  // namespace weft

#endif  // WEFT_GRAPH_STORAGE_H_
