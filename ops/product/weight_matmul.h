// weight_matmul is the compiler's product of few rows, and of weights in bf16 or a block format. This header has the
// number of rows up to which it is fast.
#ifndef WEFT_OPS_PRODUCT_WEIGHT_MATMUL_H_
#define WEFT_OPS_PRODUCT_WEIGHT_MATMUL_H_

#include <cstdint>

#include "weft/core/dtype.h"

namespace weft {

// Default of CompileOptions::few_rows. With more rows, products of packed weights are faster, unless
// FastWithManyRows() is true.
inline constexpr int64_t kFewRows = 48;

// Reports whether weight_matmul is the faster product for any number of rows, on this CPU. `weight`: dtype of w.
bool FastWithManyRows(DType weight);

}  // namespace weft

#endif  // WEFT_OPS_PRODUCT_WEIGHT_MATMUL_H_
