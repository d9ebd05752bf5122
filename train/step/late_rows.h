// The late rows of a tied table are the rows whose gradient is complete only at the end of the backward pass.
//
// A tied table is read by one embedding at the beginning of the forward pass, and by the output layer at its end. So
// the backward pass computes the output layer's part of the gradient first, and the embedding's part last. The
// embedding's part is zero except in the rows of the batch's tokens. With several ranks, the first part is therefore
// reduced during the backward pass, and afterwards only the rows of all ranks' tokens. The second
// reduction gives the totals of these rows, which replace the totals of the first reduction. A total has the same
// addends in the same order as in one reduction of the whole gradient at the end.
//
//   const std::optional<LateRows> late = LateRows::Find(programs, names, types, ranks, bucket_bytes);
//   SplitGradient split;
//   const VarList gradients = late->Gradients(loss, weights, &split);  // on the tape of each program
//   const Var ids = late->GatherIds(tape, split, &updates);  // of all ranks; Embedding(sum, ids) are the late rows
#ifndef WEFT_TRAIN_STEP_LATE_ROWS_H_
#define WEFT_TRAIN_STEP_LATE_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "weft/core/program.h"
#include "weft/core/tape.h"
#include "weft/distributed/ranks.h"
#include "weft/train/step/task.h"

namespace weft {

// The two parts of a table's gradient in one micro-batch. Empty for a micro-batch without gradients.
struct SplitGradient {
  Var first;      // [V, C]: the gradient without the embedding's part
  Var rows, ids;  // the gradient of the embedding's output, [..., C], and the rows that it names, i32 [...]
};

class LateRows {
 public:
  // Returns the largest tied table for which late rows pay: it fills a bucket, and all ranks' last micro-batches
  // together name at most a quarter of its rows. Returns nullopt if there is none. `names`, `types`: of the weights.
  // The result is the same on all ranks.
  static std::optional<LateRows> Find(absl::Span<const TrainingProgram> programs, absl::Span<const std::string> names,
                                      absl::Span<const TensorType> types, const Ranks& ranks, int64_t bucket_bytes);

  size_t weight() const { return weight_; }  // index of the table in `names`
  // Returns the gradients of `weights`, which include the table, and the parts of the table's gradient.
  VarList Gradients(Var loss, VarSpan weights, SplitGradient* split) const;
  // Records the exchange of the ids of all ranks. Returns i32 [rows]: the numbers of the late rows, with repetitions. A
  // rank with fewer ids than others fills its part with -1. Appends the sends to `updates`.
  Var GatherIds(Tape* tape, const SplitGradient& split, VarList* updates) const;
  int64_t rows() const { return ids_ * ranks_.size(); }

 private:
  LateRows() = default;

  size_t weight_ = 0;
  std::string name_;
  int64_t ids_ = 0;  // maximum number of ids of a micro-batch
  Ranks ranks_;
};

}  // namespace weft

#endif  // WEFT_TRAIN_STEP_LATE_ROWS_H_
