// The attributes of matmul, for the passes that recognise it.
#ifndef WEFT_OPS_PRODUCT_MATMUL_H_
#define WEFT_OPS_PRODUCT_MATMUL_H_

#include "weft/core/op.h"

namespace weft {

struct MatMulAttrs {
  bool transpose_a = false, transpose_b = false;  // of the last two axes
  bool f32_output = false;                        // of bf16 inputs
  auto Fields() const {
    return std::tuple{AttrField{"transpose_a", transpose_a}, AttrField{"transpose_b", transpose_b},
                      AttrField{"f32_output", f32_output, /*printed=*/f32_output}};
  }
};

}  // namespace weft

#endif  // WEFT_OPS_PRODUCT_MATMUL_H_
