// This header declares the attributes of gelu and gelu_gradient, for the files of both ops.
#ifndef WEFT_OPS_ELEMENTWISE_GELU_H_
#define WEFT_OPS_ELEMENTWISE_GELU_H_

#include "weft/ops/ops.h"

namespace weft {

struct GeluAttrs {
  GeluForm form = GeluForm::kErf;
  auto Fields() const { return std::tuple{AttrField{"form", form}}; }
};

}  // namespace weft

#endif  // WEFT_OPS_ELEMENTWISE_GELU_H_
