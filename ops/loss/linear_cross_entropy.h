// The attributes of linear_cross_entropy and its gradient, and what both become.
#ifndef WEFT_OPS_LOSS_LINEAR_CROSS_ENTROPY_H_
#define WEFT_OPS_LOSS_LINEAR_CROSS_ENTROPY_H_

#include "weft/core/tape.h"
#include "weft/ops/loss/cross_entropy.h"

namespace weft {

struct LinearCrossEntropyAttrs {
  bool transpose_w = false;  // w is stored as [V, C]
  int64_t ignore_index = kIgnoredTarget;
  double label_smoothing = 0;
  int64_t block = int64_t{1} << 24;  // logits that are there at once, roughly: rows go block by block

  CrossEntropyAttrs loss() const { return {.ignore_index = ignore_index, .label_smoothing = label_smoothing}; }
  auto Fields() const {
    return std::tuple{AttrField{"transpose_w", transpose_w}, AttrField{"ignore_index", ignore_index},
                      AttrField{"label_smoothing", label_smoothing}, AttrField{"block", block}};
  }
};

// What both ops ask of x [..., C], w [C, V] or [V, C], targets i32 [...] and, if it is there, bias [V].
absl::Status CheckLinearCrossEntropy(const char* op, const LinearCrossEntropyAttrs& attrs, TypeSpan in);

// The loss of each row and, given drow, what d(Σ row_loss · drow) is by x, w and bias: ordinary ops for one block of
// rows after the other, so that the logits of a block take the place of those before, and dlogits that of the logits.
// `inputs` are x, w, targets and the bias, or not.
struct LinearCrossEntropyParts {
  Var row_loss, dx, dw, dbias;  // null where nothing asks for it
};
LinearCrossEntropyParts LinearCrossEntropyByBlocks(const LinearCrossEntropyAttrs& attrs, VarSpan inputs, Var drow);

// [..., 1] of `dtype`: 1 where a target counts, 0 where it is ignored.
Var CountedTargets(Var targets, DType dtype, const CrossEntropyAttrs& attrs, int64_t vocabulary);

}  // namespace weft

#endif  // WEFT_OPS_LOSS_LINEAR_CROSS_ENTROPY_H_
