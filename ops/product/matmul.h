// Declares the attributes of matmul, for the op and for the compiler's passes that read them.
#ifndef WEFT_OPS_PRODUCT_MATMUL_H_
#define WEFT_OPS_PRODUCT_MATMUL_H_

#include "weft/core/op.h"

namespace weft {

// The relative tolerance of examples whose sums have more than 100 terms.
inline constexpr double kSumTolerance = 1e-5;

struct MatMulAttrs {
  bool transpose_a = false, transpose_b = false;  // the last two axes of the operand are stored swapped
  bool f32_output = false;                        // bf16 inputs give f32
  auto Fields() const {
    return std::tuple{AttrField{"transpose_a", transpose_a}, AttrField{"transpose_b", transpose_b},
                      AttrField{"f32_output", f32_output, /*printed=*/f32_output}};
  }
};

}  // namespace weft

#endif  // WEFT_OPS_PRODUCT_MATMUL_H_
