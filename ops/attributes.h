// The attributes of ops that the compiler's passes look into.
#ifndef WEFT_OPS_ATTRIBUTES_H_
#define WEFT_OPS_ATTRIBUTES_H_

#include "weft/core/tensor.h"

namespace weft {

struct FillAttrs {
  TensorType type;
  double value = 0;
  friend bool operator==(const FillAttrs&, const FillAttrs&) = default;
  template <class V>
  void Visit(V&& visit) const {
    visit("dtype", type.dtype);
    visit("shape", type.shape);
    visit("value", value);
  }
};

struct ScaleAttrs {
  double factor = 1;
  friend bool operator==(const ScaleAttrs&, const ScaleAttrs&) = default;
  template <class V>
  void Visit(V&& visit) const {
    visit("factor", factor);
  }
};

}  // namespace weft

#endif  // WEFT_OPS_ATTRIBUTES_H_
