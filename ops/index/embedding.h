// The attributes of embedding_gradient.
#ifndef WEFT_OPS_INDEX_EMBEDDING_H_
#define WEFT_OPS_INDEX_EMBEDDING_H_

#include <cstdint>

namespace weft {

struct EmbeddingGradientAttrs {
  int64_t rows = 1;  // of the table
  friend bool operator==(const EmbeddingGradientAttrs&, const EmbeddingGradientAttrs&) = default;
  template <class V>
  void Visit(V&& visit) const {
    visit("rows", rows);
  }
};

}  // namespace weft

#endif  // WEFT_OPS_INDEX_EMBEDDING_H_
