// weight_matmul is the compiler's product of few rows, and of weights in bf16 or a block format. This header has the
// number of rows up to which it is fast.
#ifndef WEFT_OPS_PRODUCT_WEIGHT_MATMUL_H_
#define WEFT_OPS_PRODUCT_WEIGHT_MATMUL_H_

#include <cstdint>

namespace weft {

// With more rows than this, arithmetic takes longer than reading a weight from memory, and packed_matmul is faster.
inline constexpr int64_t kFewRows = 48;

}  // namespace weft

#endif  // WEFT_OPS_PRODUCT_WEIGHT_MATMUL_H_
