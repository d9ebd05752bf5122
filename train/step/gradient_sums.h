// Records how a step adds the gradients of its micro-batches, on one rank or several, and how the sums update weights.
//
// Buffers hold the sums; SumPlan assigns them. Buffers are caches: no checkpoint has them, because they hold
// nothing between two steps. If ranks divide the optimizer's state (Sharding), large weights have two more kinds of
// buffers: totals of the pieces that this rank owns, and copies of these pieces of the weights. If ranks also divide
// the weights, these pieces are the weights, and there are no copies.
//
//   WEFT_ASSIGN_OR_RETURN(const GradientSums sums, GradientSums::Plan(options, programs, names, types));
//   const MicroBatchSums newest = sums.Add(loss, weights, first);  // on the tape of each program
//   const VarList updates = sums.Reduce(tape, newest);             // with several ranks
//   const Minimized step = sums.Update(optimizer, weights, rate, targets, options);
#ifndef WEFT_TRAIN_STEP_GRADIENT_SUMS_H_
#define WEFT_TRAIN_STEP_GRADIENT_SUMS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/core/parameters.h"
#include "weft/core/program.h"
#include "weft/core/tape.h"
#include "weft/distributed/all_reduce.h"
#include "weft/distributed/index_range.h"
#include "weft/train/optimize/optimizer.h"
#include "weft/train/step/step_options.h"
#include "weft/train/step/task.h"

namespace weft {

// The buffers in which one rank adds the gradients of its micro-batches. train/step/training_step.h gives the order.
//
// A slot is a set of buffers, one for each trained weight, which holds one sum of gradients. The two micro-batches of a
// pair add their gradients in one free slot. Then neighbouring sums of equal size are added, like the carries of a
// binary counter. Each such addition frees a slot. So n micro-batches need at most log2(n) slots, rounded up, and no
// sum is ever copied. Slot 0 is that of the last pair.
struct SumPlan {
  struct Add {
    int to, from;  // slot `to` ← slot `to` + slot `from`
  };
  struct Pair {
    int64_t begin, end;     // its one or two micro-batches
    int slot;               // the slot that adds their gradients
    std::vector<Add> adds;  // additions after the pair; each adds the newest sum to the one before it
  };
  std::vector<Pair> pairs;  // in the order of micro-batches
  std::vector<int> blocks;  // the slots of the blocks, except the last block
  // The slots of the sums of the last block, the newest first. They are still to be added, in this order.
  std::vector<int> left;
  int slots = 0;
};

// The gradients of one micro-batch, recorded on the tape of its program.
struct MicroBatchSums {
  // The two parts of the gradient of the table with late rows (train/step/late_rows.cc).
  struct Split {
    Var first;      // [V, C]: the gradient without the embedding's part
    Var rows, ids;  // the gradient of the embedding's output, [..., C], and the rows that it names, i32 [...]
  };
  VarList gradients;
  VarList sums;  // by weight: the new version of slot 0, or the gradient if the weight has no slot
  // With late rows, and empty for a micro-batch without gradients: the parts, and the argument `first` of
  // GradientSums::Add.
  Split split;
  Var first;
};

class GradientSums {
 public:
  // Chooses the micro-batches of this rank, and the slots in which it adds their gradients. `names`, `types`: of the
  // trained weights, in an order that is the same on all ranks.
  static absl::StatusOr<GradientSums> Plan(const StepOptions& options, absl::Span<const TrainingProgram> programs,
                                           std::vector<std::string> names, std::vector<TensorType> types);

  const SumPlan& plan() const { return plan_; }
  const IndexRange& mine() const { return mine_; }  // this rank's micro-batches
  bool several_ranks() const { return options_.ranks.size() > 1; }
  // Reports whether one of several ranks has a single micro-batch, which is then its last one.
  bool has_only_last() const { return several_ranks() && mine_.size() == 1; }
  // Reports whether the graph of a micro-batch gathers divided weights and also adds the gradients of all ranks.
  // Messages need one order on all ranks. So this is possible only if all ranks run the same graph once in a step.
  bool streams() const { return streams_; }

  // Returns the number of the bucket of Reduce to which messages with `tag` belong.
  int BucketOf(int tag) const { return reduce_->BucketOf(tag); }
  // Returns the pieces of a weight whose update is divided among the ranks. Returns none if each rank updates the whole
  // weight.
  std::vector<WeightPiece> Pieces(const TensorType& weight) const;
  // Returns the buffers of all sums.
  const std::vector<ParameterSpec>& buffers() const { return buffers_; }

  // Records the gradients of `loss`, and adds them to slot 0. `weights`: the trained weights on the loss's tape, in any
  // order. `first`: i32 [], 1 if the gradients replace the slot's content.
  MicroBatchSums Add(Var loss, VarSpan weights, Var first) const;
  // Records the sums over all ranks, which follow the last micro-batch. Returns the updates.
  VarList Reduce(Tape* tape, const MicroBatchSums& newest) const;
  // Does the same for a rank whose last micro-batch is empty. The newest sums are then in slot 0.
  VarList ReduceWithoutGradients(Tape* tape) const;
  // Adds slot 1 to slot 0. Returns the updates.
  VarList AddSlots(Tape* tape) const;
  // Records the update of `weights`, which are parameters on the tape of `rate`. The gradients are the total sums
  // divided by `targets`, f32 [].
  Minimized Update(const Optimizer& optimizer, VarSpan weights, Var rate, Var targets, UpdateOptions options) const;

  // Sets the sums of a slot to 0.
  absl::Status Clear(int slot, Parameters* parameters) const;
  // Returns pairs of names for Runner::UseParameters. They make a graph that was recorded on slots 0, 1, ... use
  // slots[0], slots[1], ...
  std::vector<std::pair<std::string, std::string>> SlotNames(absl::Span<const int> slots) const;

 private:
  GradientSums() = default;
  void ListBuffers();
  TensorType SumType(const TensorType& weight) const;
  bool HasSlots(size_t weight) const;
  Var Slot(Tape* tape, int slot, size_t weight) const;
  Var PieceSum(Tape* tape, size_t weight, const WeightPiece& piece) const;
  TensorType PieceType(size_t weight, IndexRange rows) const;
  TensorType LateRowsType() const;
  Var LateRowsOf(Var sum, Var ids) const;
  Var LateSum(Tape* tape, Var ids, const MicroBatchSums& newest, Var* sum) const;

  // The tied table whose late rows are sent apart. The following functions are in train/step/late_rows.cc.
  struct LateRows {
    size_t weight = 0;  // index of the table in names_
    int64_t ids = 0;    // maximum number of ids of a micro-batch
    int64_t rows = 0;   // of all ranks: maximum number of ids
  };
  void FindLateRows(absl::Span<const TrainingProgram> programs);
  VarList Gradients(Var loss, VarSpan weights, MicroBatchSums::Split* split) const;
  Var GatherLateIds(Tape* tape, const MicroBatchSums::Split& split, VarList* updates) const;

  StepOptions options_;
  bool streams_ = false;
  IndexRange mine_;
  std::optional<AllReduce> reduce_;  // set by Plan
  SumPlan plan_;
  std::vector<std::string> names_;
  std::vector<TensorType> types_;
  std::vector<ParameterSpec> buffers_;
  std::optional<LateRows> late_;  // nullopt: no table has late rows
};

}  // namespace weft

#endif  // WEFT_TRAIN_STEP_GRADIENT_SUMS_H_
