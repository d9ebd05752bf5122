// The attributes that gelu and gelu_gradient share.
#ifndef WEFT_OPS_ELEMENTWISE_GELU_H_
#define WEFT_OPS_ELEMENTWISE_GELU_H_

#include "weft/ops/ops.h"

namespace weft {

struct GeluAttrs {
  GeluForm form = GeluForm::kErf;
  friend bool operator==(const GeluAttrs&, const GeluAttrs&) = default;
  template <class V>
  void Visit(V&& visit) const {
    visit("form", form);
  }
};

}  // namespace weft

#endif  // WEFT_OPS_ELEMENTWISE_GELU_H_
