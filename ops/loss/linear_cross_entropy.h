// Declares the attributes of linear_cross_entropy and linear_cross_entropy_gradient, and the function that replaces
// both by ordinary ops on blocks of rows.
#ifndef WEFT_OPS_LOSS_LINEAR_CROSS_ENTROPY_H_
#define WEFT_OPS_LOSS_LINEAR_CROSS_ENTROPY_H_

#include "weft/core/tape.h"
#include "weft/ops/loss/cross_entropy.h"

namespace weft {

struct LinearCrossEntropyAttrs {
  bool transpose_w = false;  // w is stored as [V, C]
  int64_t ignore_index = kIgnoredTarget;
  double label_smoothing = 0;
  int64_t block = int64_t{1} << 24;  // approximate number of logits in one block of rows

  CrossEntropyAttrs loss() const { return {.ignore_index = ignore_index, .label_smoothing = label_smoothing}; }
  auto Fields() const {
    return std::tuple{AttrField{"transpose_w", transpose_w}, AttrField{"ignore_index", ignore_index},
                      AttrField{"label_smoothing", label_smoothing}, AttrField{"block", block}};
  }
};

// Records the loss of each row and, if `drow` is given, the gradients of Σ row_loss · drow by x, w and bias. Records
// one block of rows after the other, so that dlogits and the next block's logits can reuse the bytes of a block's
// logits. `inputs` are x, w, targets and, optionally, the bias.
struct LinearCrossEntropyResult {
  Var row_loss, dx, dw, dbias;  // dx, dw and dbias are empty without `drow`
};
LinearCrossEntropyResult LinearCrossEntropyByBlocks(const LinearCrossEntropyAttrs& attrs, VarSpan inputs, Var drow);

}  // namespace weft

#endif  // WEFT_OPS_LOSS_LINEAR_CROSS_ENTROPY_H_
