// Declares the attributes of cross_entropy and linear_cross_entropy, and what both share.
#ifndef WEFT_OPS_LOSS_CROSS_ENTROPY_H_
#define WEFT_OPS_LOSS_CROSS_ENTROPY_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "weft/core/program.h"
#include "weft/core/tensor.h"
#include "weft/ops/ops.h"

namespace weft {

struct CrossEntropyAttrs {
  int64_t ignore_index = kIgnoredTarget;
  double label_smoothing = 0;
  auto Fields() const {
    return std::tuple{AttrField{"ignore_index", ignore_index}, AttrField{"label_smoothing", label_smoothing}};
  }
};

// Reports whether a target counts: it is in 0 .. vocabulary - 1 and not ignore_index.
constexpr bool IsValidTarget(int64_t target, const CrossEntropyAttrs& attrs, int64_t vocabulary) {
  return target != attrs.ignore_index && target >= 0 && target < vocabulary;
}

// Returns the cross-entropy with class weights, or with probabilities as targets, composed of other ops.
absl::StatusOr<Var> SpeltCrossEntropy(Var logits, Var targets, const CrossEntropyOptions& options);

// Returns [..., 1] of `dtype`: 1 where a target counts, 0 where it is ignored.
Var CountedTargets(Var targets, DType dtype, const CrossEntropyAttrs& attrs, int64_t vocabulary);

// Checks logits [..., V], targets i32 [...] and the attributes of `op`.
absl::Status CheckCrossEntropy(const char* op, const CrossEntropyAttrs& attrs, TypeSpan in);

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

// Replaces linear_cross_entropy and linear_cross_entropy_gradient by ordinary ops on blocks of rows. Records the loss
// of each row and, if `drow` is given, the gradients of Σ row_loss · drow by x, w and bias. Records one block of rows
// after the other, so that dlogits and the next block's logits can reuse the bytes of a block's logits. `inputs` are x,
// w, targets and, optionally, the bias.
struct LinearCrossEntropyResult {
  Var row_loss, dx, dw, dbias;  // dx, dw and dbias are empty without `drow`
};
LinearCrossEntropyResult LinearCrossEntropyByBlocks(const LinearCrossEntropyAttrs& attrs, VarSpan inputs, Var drow);

}  // namespace weft

#endif  // WEFT_OPS_LOSS_CROSS_ENTROPY_H_
