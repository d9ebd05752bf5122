// Records how a step adds the gradients of its micro-batches, on one rank or several, and how the sums update weights.
//
// Buffers hold the sums; SumPlan assigns them. Buffers are caches: no checkpoint has them, because they hold
// nothing between two steps. If ranks divide the optimizer's state (Sharding), large weights have two more kinds of
// buffers: totals of the pieces that this rank owns, and copies of these pieces of the weights. If ranks also divide
// the weights, these pieces are the weights, and there are no copies.
//
//   WEFT_ASSIGN_OR_RETURN(GradientSums sums, GradientSums::Plan(options));
//   sums.SetWeights(names, types);
//   const Var sum = sums.Add(name, gradient, first);  // for each weight, on the tape of a program
#ifndef WEFT_TRAIN_GRADIENT_SUMS_H_
#define WEFT_TRAIN_GRADIENT_SUMS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "weft/core/program.h"
#include "weft/core/tape.h"
#include "weft/distributed/all_reduce.h"
#include "weft/distributed/index_range.h"
#include "weft/distributed/ranks.h"
#include "weft/train/late_rows.h"
#include "weft/train/optimizer.h"
#include "weft/train/training_step.h"

namespace weft {

// The buffers in which one rank adds the gradients of its micro-batches. train/training_step.h gives the order.
//
// A slot is a set of buffers, one for each trained weight, which holds one sum of gradients. The two micro-batches of a
// pair add their gradients in one free slot. Then neighbouring sums of equal size are added, like the carries of a
// binary counter. Each such addition frees a slot. So n micro-batches need at most log2(n) slots, rounded up, and no
// sum is ever copied.
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

class GradientSums {
 public:
  // Chooses the micro-batches of this rank, and the slots in which it adds their gradients.
  // `streams`: whether the graph of a micro-batch gathers divided weights and also adds gradients.
  static absl::StatusOr<GradientSums> Plan(const StepOptions& options, bool streams = false);

  const SumPlan& plan() const { return plan_; }
  const IndexRange& mine() const { return mine_; }  // this rank's micro-batches
  bool several_ranks() const { return ranks_.size() > 1; }
  // Reports whether one of several ranks has a single micro-batch, which is then its last one.
  bool has_only_last() const { return several_ranks() && mine_.size() == 1; }

  // Sets the names and types of the trained weights, in an order that is the same on all ranks. Must be called before
  // the functions below.
  void SetWeights(std::vector<std::string> names, std::vector<TensorType> types);
  // Makes Reduce send the late rows of a table apart. Must be called after SetWeights.
  void SetLateRows(const LateRows& late);
  const std::optional<LateRows>& late_rows() const { return late_; }
  // Returns the number of the bucket of Reduce to which messages with `tag` belong.
  int BucketOf(int tag) const { return reduce_->BucketOf(tag); }
  // Returns the pieces of a weight whose update is divided among the ranks. Returns none if each rank updates the whole
  // weight.
  std::vector<WeightPiece> Pieces(const TensorType& weight) const;
  // Returns the buffers of all sums.
  const std::vector<ParameterSpec>& buffers() const { return buffers_; }

  // Adds the gradient of one micro-batch to slot 0 and returns its new version. `first`: i32 [], 1 if the gradient
  // replaces the slot's content. If no slot is needed, returns the gradient.
  Var Add(absl::string_view weight, Var gradient, Var first) const;
  // Records the sums over all ranks, which follow the last micro-batch. `newest`: the newest sum of each weight of
  // `names`. `slot_of`: maps slots of the plan to those of the graph. `split`, `first`: with late_rows(), the parts of
  // their table's gradient, and the argument of Add. Returns the updates.
  VarList Reduce(Tape* tape, const std::vector<std::string>& names, const VarList& newest,
                 absl::FunctionRef<int(int)> slot_of, const SplitGradient& split = {}, Var first = {}) const;
  // Does the same for a rank whose last micro-batch is empty. The newest sums are then in the slot of the last pair.
  VarList ReduceWithoutGradients(Tape* tape) const;
  // Adds slot 1 to slot 0. Returns the updates.
  VarList AddSlots(Tape* tape) const;
  // Sets slot 0 to 0. Returns the updates.
  VarList Clear(Tape* tape) const;
  // Records the update of `weights`, which are parameters on the tape of `rate`. The gradients are the total sums
  // divided by `targets`, f32 [].
  Minimized Update(const Optimizer& optimizer, VarSpan weights, Var rate, Var targets, UpdateOptions options) const;

  // Returns pairs of names for Runner::UseParameters: a buffer of slot `recorded(slot)`, and the buffer of `slot` that
  // replaces it.
  using Names = std::vector<std::pair<std::string, std::string>>;
  Names SlotNames(absl::Span<const int> slots, absl::FunctionRef<int(int)> recorded) const;
  // Returns the slots that Reduce uses.
  std::vector<int> ReducedSlots() const;

 private:
  GradientSums() = default;
  TensorType SumType(const TensorType& weight) const;
  bool HasSlots(size_t weight) const;
  Var Slot(Tape* tape, int slot, size_t weight) const;
  Var PieceSum(Tape* tape, size_t weight, const WeightPiece& piece) const;
  Var WithOlderSums(Var newest, size_t weight) const;
  TensorType PieceType(size_t weight, IndexRange rows) const;
  TensorType LateRowsType() const;
  Var LateRowsOf(Var sum, Var ids) const;
  Var LateSum(Tape* tape, Var ids, const SplitGradient& split, Var first, Var* sum) const;

  Ranks ranks_;
  DType sums_ = kF32;
  Sharding sharding_ = Sharding::kNone;
  bool streams_ = false;
  IndexRange mine_;
  std::optional<AllReduce> reduce_;  // set by Plan
  SumPlan plan_;
  std::vector<std::string> names_;
  std::vector<TensorType> types_;
  std::vector<ParameterSpec> buffers_;
  std::optional<LateRows> late_;
};

}  // namespace weft

#endif  // WEFT_TRAIN_GRADIENT_SUMS_H_
