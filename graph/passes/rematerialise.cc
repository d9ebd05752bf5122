// Rematerialisation: within a memory budget, values are computed again instead of kept until their last use.
//
// recomputation.h chooses the nodes by an estimate of the live bytes. What a choice really takes is known only once the
// memory is planned, because ranges between values lie unused; so choices are tried until the plan fits.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "weft/core/status.h"
#include "weft/graph/memory_plan.h"
#include "weft/graph/passes/passes.h"
#include "weft/graph/passes/recomputation.h"

namespace weft {
namespace {

constexpr int kMaxTries = 8;      // each lowers the limit, because the plan needs some bytes between its ranges
constexpr int kMaxHalvings = 10;  // of the search for the lowest limit that can be met: to 0.1% of the bytes

// Records a program again, with the clones that were chosen.
class Cloner {
 public:
  Cloner(const Rewrite& rewrite, const Recomputation& choice)
      : choice_(choice),
        before_(rewrite.program),
        after_(rewrite),
        latest_(before_.values.size()),
        viewed_(before_.values.size()) {
    after_.program.nodes.clear();
    for (uint32_t v = 0; v < latest_.size(); ++v) latest_[v] = ValueId{v};
    for (const Node& node : before_.nodes) {
      if (node.op->view) viewed_[node.output(0)] = node.inputs[0];
    }
  }

  Rewrite Run() && {
    const uint32_t end = static_cast<uint32_t>(before_.nodes.size());
    auto next = choice_.clones.begin();
    for (uint32_t n = 0; n <= end; ++n) {
      for (; next != choice_.clones.end() && next->first == n; ++next) Clone(before_.nodes[next->second]);
      if (n == end) break;
      Node node = before_.nodes[n];
      for (ValueId& in : node.inputs) in = Latest(in);
      after_.program.nodes.push_back(std::move(node));
    }
    for (ValueId& root : after_.roots) root = Latest(root);
    NumberProducers(&after_.program);
    return std::move(after_);
  }

 private:
  // Returns the value that now stands for `id`: itself, its latest clone, or the same view of a clone.
  ValueId Latest(ValueId id) {
    const Node& node = before_.producer(id);
    if (node.op->view) {
      const ValueId input = Latest(node.inputs[0]);
      ValueId& viewed = viewed_[id];
      if (viewed != input) {
        viewed = input;
        Clone(node);
      }
    }
    return latest_[id];
  }

  // Attributes are kept, and so are the streams of random numbers.
  void Clone(const Node& original) {
    Node node = original;
    for (ValueId& in : node.inputs) in = Latest(in);
    node.first_output = ValueId{static_cast<uint32_t>(after_.program.values.size())};
    for (uint32_t i = 0; i < node.output_count; ++i) {
      latest_[original.output(i)] = node.output(i);
      after_.program.values.push_back({before_.value(original.output(i)).type, kNoNode});
    }
    after_.program.nodes.push_back(std::move(node));
  }

  const Recomputation& choice_;
  const Program& before_;
  Rewrite after_;
  std::vector<ValueId> latest_;  // by value of the program before: its latest clone, or itself
  std::vector<ValueId> viewed_;  // by view of the program before: the input of its latest clone
};

size_t Planned(const Rewrite& rewrite) {
  return PlannedBytes(rewrite.program, rewrite.roots, rewrite.tile_seconds, rewrite.fuse);
}

struct Trial {
  Rewrite rewrite;
  size_t planned = 0;
  double seconds = 0;
  bool fits = false;  // by the estimate of the live bytes
};

absl::StatusOr<Trial> Try(const Rewrite& rewrite, size_t limit) {
  const Recomputation choice = ChooseRecomputation(rewrite, limit);
  Trial trial = {.rewrite = Cloner(rewrite, choice).Run(), .seconds = choice.seconds, .fits = choice.fits};
  WEFT_RETURN_IF_ERROR(DropDead(trial.rewrite));
  WEFT_RETURN_IF_ERROR(OrderWrites(trial.rewrite));
  trial.planned = Planned(trial.rewrite);
  return trial;
}

// Tries limit 0 and then `kMaxHalvings` limits, by bisection of 0 .. `needed`, and returns the trial with the fewest
// planned bytes. The limits do not depend on the budget, so compiling again with the reported minimum as the budget
// succeeds.
absl::StatusOr<Trial> Smallest(const Rewrite& rewrite, size_t needed) {
  WEFT_ASSIGN_OR_RETURN(Trial smallest, Try(rewrite, 0));
  size_t low = 0, high = needed;
  for (int i = 0; i < kMaxHalvings; ++i) {
    const size_t middle = low + (high - low) / 2;
    WEFT_ASSIGN_OR_RETURN(Trial trial, Try(rewrite, middle));
    (trial.fits ? high : low) = middle;
    if (trial.planned < smallest.planned) smallest = std::move(trial);
  }
  return smallest;
}

// Returns the first trial within the budget, else the smallest one.
absl::StatusOr<Trial> Meet(const Rewrite& rewrite, size_t budget, size_t needed) {
  size_t limit = budget, margin = 0;
  for (int i = 0; i < kMaxTries; ++i) {
    WEFT_ASSIGN_OR_RETURN(Trial trial, Try(rewrite, limit));
    if (trial.planned <= budget) return trial;
    margin = std::max(2 * margin, trial.planned - budget);
    if (!trial.fits || margin >= limit) break;
    limit -= margin;
  }
  return Smallest(rewrite, needed);
}

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
  WEFT_ASSIGN_OR_RETURN(Trial trial, Meet(rewrite, budget, needed));
  if (trial.planned > budget) {
    return absl::ResourceExhaustedError(
        absl::StrCat("compile: memory_budget is ", budget, " bytes, but the minimum for the values of this graph is ",
                     std::min(needed, trial.planned), "; without a budget they take ", needed));
  }
  rewrite = std::move(trial.rewrite);
  rewrite.recomputed_seconds = trial.seconds;
  return absl::OkStatus();
}

}  // namespace weft
