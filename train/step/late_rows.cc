#include "weft/train/step/late_rows.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "weft/distributed/index_range.h"
#include "weft/distributed/message_ops.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/ops.h"

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

std::optional<LateRows> LateRows::Find(absl::Span<const TrainingProgram> programs, absl::Span<const std::string> names,
                                       absl::Span<const TensorType> types, const Ranks& ranks, int64_t bucket_bytes) {
  std::optional<LateRows> best;
  if (ranks.size() == 1) return best;
  for (size_t i = 0; i < names.size(); ++i) {
    if (types[i].shape.rank() != 2 || static_cast<int64_t>(types[i].bytes()) < bucket_bytes) continue;
    if (best && types[i].bytes() <= types[best->weight_].bytes()) continue;
    LateRows found;
    found.weight_ = i;
    found.name_ = names[i];
    found.ranks_ = ranks;
    const bool tied = absl::c_all_of(programs, [&](const TrainingProgram& each) {
      if (!each.tape->HasParameter(names[i])) return false;
      const Program& program = each.tape->program();
      const Node* const embedding = FindEmbedding(program, each.tape->FindParameter(names[i]).id);
      if (embedding != nullptr) found.ids_ = std::max(found.ids_, Ids(program, *embedding));
      return embedding != nullptr;
    });
    if (tied && found.ids_ > 0 && found.rows() * kMinTableRowsPerLateRow <= types[i].shape.dim(0)) best = found;
  }
  return best;
}

VarList LateRows::Gradients(Var loss, VarSpan weights, SplitGradient* split) const {
  Tape* const tape = loss.tape;
  const Var table = tape->FindParameter(name_);
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

Var LateRows::GatherIds(Tape* tape, const SplitGradient& split, VarList* updates) const {
  VarList parts;
  if (split.ids) parts.push_back(Reshape(split.ids, {split.ids.shape().elements()}));
  const int64_t missing = ids_ - (split.ids ? parts[0].dim(0) : 0);
  if (missing > 0) parts.push_back(Fill(tape, {kI32, {missing}}, -1));
  const Var mine = parts.size() == 1 ? parts[0] : Concat(parts, 0);
  std::vector<IndexRange> ranges;
  for (int64_t rank = 0; rank < ranks_.size(); ++rank) ranges.push_back({rank * ids_, (rank + 1) * ids_});
  const Var state = tape->State("late_rows.ids", {kI32, {rows()}}, Zeros(), ParameterKind::kCache);
  return AllGather(state, mine, ranges, ranks_.rank(), updates);
}

}  // namespace weft
