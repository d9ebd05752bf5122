// Declares the attributes of embedding_gradient, for the files that define or record the op.
#ifndef WEFT_OPS_INDEX_EMBEDDING_H_
#define WEFT_OPS_INDEX_EMBEDDING_H_

#include <cstdint>

#include "weft/core/op.h"

namespace weft {

struct EmbeddingGradientAttrs {
  int64_t rows = 1;  // number of rows of the table
  auto Fields() const { return std::tuple{AttrField{"rows", rows}}; }
};

}  // namespace weft

#endif  // WEFT_OPS_INDEX_EMBEDDING_H_
