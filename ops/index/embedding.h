// Declares the attributes of embedding, which the compiler sets, and EmbeddingGradient, with which other functions add
// up rows by ids.
#ifndef WEFT_OPS_INDEX_EMBEDDING_H_
#define WEFT_OPS_INDEX_EMBEDDING_H_

#include <cstdint>
#include <tuple>

#include "weft/core/op.h"

namespace weft {

struct EmbeddingAttrs {
  bool widened = false;  // gives rows of a table in bf16 or a block format in f32
  auto Fields() const { return std::tuple{AttrField{"widened", widened, /*printed=*/widened}}; }
};

// Returns [`rows`, C], whose row v is the sum of dy[i, :] over all i with ids[i] = v. dy is [..., C], and ids are i32
// [...]. An id outside 0 .. rows-1 adds nothing.
Var EmbeddingGradient(Var dy, Var ids, int64_t rows);

}  // namespace weft

#endif  // WEFT_OPS_INDEX_EMBEDDING_H_
