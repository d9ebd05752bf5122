// Declares the gradient of Embedding for other functions that look up rows.
#ifndef WEFT_OPS_INDEX_EMBEDDING_H_
#define WEFT_OPS_INDEX_EMBEDDING_H_

#include <cstdint>

#include "weft/core/op.h"

namespace weft {

// Returns [rows, C]: Σ dy[i, :] at row v, over all i with ids[i] = v, for dy [..., C] and ids i32 [...].
Var EmbeddingGradient(Var dy, Var ids, int64_t rows);

}  // namespace weft

#endif  // WEFT_OPS_INDEX_EMBEDDING_H_
