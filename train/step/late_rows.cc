// This file has the part of GradientSums for late rows: the rows of a tied table whose gradient is complete only at the
// end of the backward pass.
//
// A tied table is read by one embedding at the beginning of the forward pass, and by the output layer at its end. So
// the backward pass computes the output layer's part of the gradient first, and the embedding's part last. The
// embedding's part is zero except in the rows of the batch's tokens. With several ranks, the first part is therefore
// reduced during the backward pass, and afterwards only the rows of all ranks' tokens. The second
// reduction gives the totals of these rows, which replace the totals of the first reduction. A total has the same
// addends in the same order as in one reduction of the whole gradient at the end.
#include <algorithm>

#include "absl/algorithm/container.h"
#include "weft/distributed/message_ops.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/ops.h"
#include "weft/train/step/gradient_sums.h"

namespace weft {
namespace {

// Late rows are used only if they are at most 1/4 of the table's rows. Then they are small beside the messages that
// they leave to the backward pass.
constexpr int64_t kMinTableRowsPerLateRow = 4;

// Returns the embedding that reads a tied table, or null. The embedding must be the table's first reader, so that its
// part of the gradient is added last. A second embedding is not supported: the compiler may join equal embeddings, but
// not if a gradient is taken by one of them, so the bits would differ.
const Node* FindEmbedding(const Program& program, ValueId table) {
  const Node* first = nullptr;
  int readers = 0, embeddings = 0;
  for (const Node& node : program.nodes) {
    if (node.op == &kGradientOp || !absl::c_linear_search(node.inputs, table)) continue;
    if (first == nullptr) first = &node;
    ++readers;
    if (node.op == &kEmbedding) ++embeddings;
  }
  return readers > 1 && embeddings == 1 && first->op == &kEmbedding ? first : nullptr;
}

int64_t Ids(const Program& program, const Node& embedding) {
  return program.value(embedding.inputs[1]).type.shape.elements();
}

}  // namespace

// Chooses the largest tied table for which late rows pay, the same on all ranks: it fills a bucket, and all ranks' last
// micro-batches together name at most a quarter of its rows.
void GradientSums::FindLateRows(absl::Span<const TrainingProgram> programs) {
  if (!several_ranks()) return;
  for (size_t i = 0; i < names_.size(); ++i) {
    const TensorType& type = types_[i];
    if (type.shape.rank() != 2 || static_cast<int64_t>(type.bytes()) < options_.bucket_bytes) continue;
    if (late_ && type.bytes() <= types_[late_->weight].bytes()) continue;
    int64_t ids = 0;
    const bool tied = absl::c_all_of(programs, [&](const TrainingProgram& each) {
      if (!each.tape->HasParameter(names_[i])) return false;
      const Program& program = each.tape->program();
      const Node* const embedding = FindEmbedding(program, each.tape->FindParameter(names_[i]).id);
      if (embedding != nullptr) ids = std::max(ids, Ids(program, *embedding));
      return embedding != nullptr;
    });
    const int64_t rows = ids * options_.ranks.size();
    if (tied && ids > 0 && rows * kMinTableRowsPerLateRow <= type.shape.dim(0)) late_ = LateRows{i, ids, rows};
  }
}

// Returns the gradients of `weights`, which include the table, and the parts of the table's gradient.
VarList GradientSums::Gradients(Var loss, VarSpan weights, MicroBatchSums::Split* split) const {
  Tape* const tape = loss.tape;
  const Var table = tape->FindParameter(names_[late_->weight]);
  if (!tape->status().ok()) return VarList(weights.size(), tape->Poison());
  const Node embedding = *FindEmbedding(tape->program(), table.id);
  // Gradients by the weights and by the embedding's output. Of the table's gradient, the embedding's part is left out.
  VarList inputs = {loss};
  inputs.insert(inputs.end(), weights.begin(), weights.end());
  inputs.push_back({tape, embedding.output(0)});
  VarList gradients = tape->Record(kGradientOp, Attrs::Of(GradientAttrs{.partial = true}), inputs);
  split->rows = gradients.back();
  split->ids = {tape, embedding.inputs[1]};
  gradients.pop_back();
  Var& whole = gradients[static_cast<size_t>(
      absl::c_find_if(weights, [&](Var weight) { return weight.id == table.id; }) - weights.begin())];
  split->first = whole;
  whole = Record(kEmbeddingGradientAdd, {split->first, split->rows, split->ids});
  return gradients;
}

// Records the exchange of the ids of all ranks. Returns i32 [rows]: the numbers of the late rows, with repetitions. A
// rank with fewer ids than others fills its part with -1. Appends the sends to `updates`.
Var GradientSums::GatherLateIds(Tape* tape, const MicroBatchSums::Split& split, VarList* updates) const {
  const int64_t ids = late_->ids;
  VarList parts;
  if (split.ids) parts.push_back(Reshape(split.ids, {split.ids.shape().elements()}));
  const int64_t missing = ids - (split.ids ? parts[0].dim(0) : 0);
  if (missing > 0) parts.push_back(Fill(tape, {kI32, {missing}}, -1));
  const Var mine = parts.size() == 1 ? parts[0] : Concat(parts, 0);
  std::vector<IndexRange> ranges;
  for (int64_t rank = 0; rank < options_.ranks.size(); ++rank) ranges.push_back({rank * ids, (rank + 1) * ids});
  const Var state = tape->State("late_rows.ids", {kI32, {late_->rows}}, Zeros(), ParameterKind::kCache);
  return AllGather(state, mine, ranges, options_.ranks.rank(), updates);
}

}  // namespace weft
