// Whose bytes a value uses: views share those of what they view.
#ifndef WEFT_GRAPH_STORAGE_H_
#define WEFT_GRAPH_STORAGE_H_

#include "weft/core/program.h"

namespace weft {

// The value at the start of the chain of views that `id` ends.
ValueId StorageRoot(const Program& program, ValueId id);

extern const OpDef kCopyOp;  // the compiler's own: the same bytes in another place

}  // namespace weft

#endif  // WEFT_GRAPH_STORAGE_H_
