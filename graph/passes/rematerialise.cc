#include <algorithm>

#include "absl/strings/str_cat.h"
#include "weft/core/status.h"
#include "weft/graph/memory_plan.h"
#include "weft/graph/passes/passes.h"
#include "weft/graph/passes/recomputation.h"

namespace weft {
namespace {

constexpr int kMaxTries = 8;      // to meet a budget that the plan misses by what lies unused between its ranges
constexpr int kMaxHalvings = 10;  // of the span in which the least is looked for

// Records the program again, with the clones.
class Cloner {
 public:
  Cloner(const Rewrite& rewrite, const std::vector<uint32_t>& from)
      : from_(from), before_(rewrite.program), after_(rewrite), clones_(rewrite.program.values.size(), kNoValue) {
    after_.program.nodes.clear();
  }

  Rewrite Run() && {
    std::vector<std::pair<uint32_t, uint32_t>> made;  // (time, node), a clone's inputs before it
    const uint32_t end = static_cast<uint32_t>(before_.nodes.size());
    for (uint32_t n = 0; n < end; ++n) {
      if (from_[n] != kNever) made.push_back({from_[n], n});
    }
    std::sort(made.begin(), made.end());
    auto next = made.begin();
    for (uint32_t n = 0; n <= end; ++n) {
      for (; next != made.end() && next->first == n; ++next) Clone(before_.nodes[next->second], n);
      if (n == end) break;
      Node node = before_.nodes[n];
      for (ValueId& in : node.inputs) in = At(in, n);
      after_.program.nodes.push_back(std::move(node));
    }
    for (ValueId& root : after_.roots) root = At(root, end);
    NumberProducers(&after_.program);
    return std::move(after_);
  }

 private:
  // What stands for `id` at a time: itself, its clone, or the same view of a clone.
  ValueId At(ValueId id, uint32_t time) {
    const NodeId producer = before_.value(id).producer;
    const Node& node = before_.node(producer);
    ValueId& clone = clones_[static_cast<size_t>(id)];
    if (node.op->view && clone == kNoValue && At(node.inputs[0], time) != node.inputs[0]) Clone(node, time);
    if (node.op->view) return clone == kNoValue ? id : clone;
    return from_[static_cast<size_t>(producer)] <= time ? clone : id;
  }

  // Attributes are kept, and so are streams of random numbers.
  void Clone(const Node& original, uint32_t time) {
    Node node = original;
    for (ValueId& in : node.inputs) in = At(in, time);
    node.first_output = ValueId{static_cast<uint32_t>(after_.program.values.size())};
    for (uint32_t i = 0; i < node.output_count; ++i) {
      clones_[static_cast<size_t>(original.output(i))] = node.output(i);
      after_.program.values.push_back({before_.value(original.output(i)).type, kNoNode});
    }
    after_.program.nodes.push_back(std::move(node));
  }

  const std::vector<uint32_t>& from_;
  const Program& before_;
  Rewrite after_;
  std::vector<ValueId> clones_;  // by value
};

size_t Planned(const Rewrite& rewrite) {
  return PlannedBytes(rewrite.program, rewrite.roots, rewrite.tile_seconds, rewrite.fuse);
}

struct Trial {
  Rewrite rewrite;
  size_t planned = 0;
  double seconds = 0;
  bool fits = false;  // what was asked of the choice
};

class Rematerialiser {
 public:
  explicit Rematerialiser(const Rewrite& rewrite) : rewrite_(rewrite), chooser_(rewrite) {}

  // The first trial within the budget, else the one that needs least.
  absl::StatusOr<Trial> Run(size_t budget) {
    size_t target = budget, less = 0;
    for (int i = 0; i < kMaxTries; ++i) {
      WEFT_ASSIGN_OR_RETURN(Trial trial, Try(target));
      if (trial.planned <= budget) return trial;
      less = std::max(2 * less, trial.planned - budget);
      if (!trial.fits || less >= target) break;
      target -= less;
    }
    return Least();
  }

 private:
  absl::StatusOr<Trial> Try(size_t target) {
    const Recomputation choice = chooser_.Choose(target);
    Trial trial = {.rewrite = Cloner(rewrite_, choice.from).Run(), .seconds = choice.seconds, .fits = choice.fits};
    WEFT_RETURN_IF_ERROR(DropDead(trial.rewrite));
    WEFT_RETURN_IF_ERROR(OrderWrites(trial.rewrite));
    trial.planned = Planned(trial.rewrite);
    return trial;
  }

  // Does not depend on the budget, so that what it finds can be asked for.
  absl::StatusOr<Trial> Least() {
    size_t low = 0, high = chooser_.most_live();
    WEFT_ASSIGN_OR_RETURN(Trial least, Try(low));
    for (int i = 0; i < kMaxHalvings; ++i) {
      const size_t middle = low + (high - low) / 2;
      WEFT_ASSIGN_OR_RETURN(Trial trial, Try(middle));
      (trial.fits ? high : low) = middle;
      if (trial.planned < least.planned) least = std::move(trial);
    }
    return least;
  }

  const Rewrite& rewrite_;
  RecomputationChooser chooser_;
};

}  // namespace

// Rewrite x, f(x), ..., g(x) to x, f(x), ..., clone of x, g(x), so that the bytes of x are free in between. A clone has
// the tiles, the random numbers and so the bits of the original.
absl::Status Rematerialise(Rewrite& rewrite) {
  const size_t budget = rewrite.memory_budget;
  if (budget == 0) return absl::OkStatus();
  Rewrite ordered = rewrite;
  WEFT_RETURN_IF_ERROR(OrderWrites(ordered));
  const size_t needed = Planned(ordered);
  if (needed <= budget) return absl::OkStatus();
  WEFT_ASSIGN_OR_RETURN(Trial trial, Rematerialiser(rewrite).Run(budget));
  if (trial.planned > budget) {
    return absl::ResourceExhaustedError(absl::StrCat("compile: memory_budget is ", budget, " bytes, but the least for ",
                                                     "the values of this graph is ", std::min(needed, trial.planned),
                                                     "; without a budget they take ", needed));
  }
  rewrite = std::move(trial.rewrite);
  rewrite.recomputed_seconds = trial.seconds;
  return absl::OkStatus();
}

}  // namespace weft
