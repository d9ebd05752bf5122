// Rematerialisation: within a memory budget, values are computed again instead of being kept until their last use.
//
// recomputation.h chooses the nodes by an estimate of the live bytes. The memory plan takes more bytes, because some
// ranges between values stay unused. So the pass tries lower limits for the estimate until the plan fits the budget.
#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "weft/base/status.h"
#include "weft/graph/compile/passes/passes.h"
#include "weft/graph/compile/passes/recomputation.h"
#include "weft/graph/compile/stages.h"

namespace weft {
namespace {

constexpr int kMaxTries = 8;      // each try has a lower limit, because plans leave some ranges unused
constexpr int kMaxHalvings = 10;  // in the search for the lowest limit: to 0.1% of the bytes

// Records a program again, with the chosen clones. After a clone, nodes read its outputs instead of those of the
// original.
class Cloner {
 public:
  explicit Cloner(Rewrite& rewrite) : rewrite_(rewrite), replay_(rewrite), cloned_(rewrite.program.values.size()) {}

  absl::Status Run(const Recomputation& choice) && {
    auto next = choice.clones.begin();
    uint32_t time = 0;
    const auto make_clones = [&] {
      for (; next != choice.clones.end() && next->first == time; ++next) Clone(replay_.program().nodes[next->second]);
      ++time;
    };
    WEFT_RETURN_IF_ERROR(replay_.Record([&](const Node& node) -> VarList {
      make_clones();
      CloneViews(node.inputs);
      return {};  // copied as it is, on what its inputs have become
    }));
    make_clones();
    CloneViews(rewrite_.roots);
    replay_.Finish();
    return absl::OkStatus();
  }

 private:
  // The clone has the node's attributes, and so draws the same random numbers.
  void Clone(const Node& node) {
    CloneViews(node.inputs);
    replay_.Replace(node, replay_.Copy(node));
    for (ValueId id : node.outputs()) cloned_[id] = true;
  }

  // Clones those of `ids` that are views of values with clones.
  void CloneViews(absl::Span<const ValueId> ids) {
    for (ValueId id : ids) {
      const Node& node = replay_.program().producer(id);
      if (!node.op->view || cloned_[id]) continue;
      CloneViews(node.inputs);
      if (cloned_[node.inputs[0]]) Clone(node);
    }
  }

  Rewrite& rewrite_;
  Replay replay_;
  std::vector<bool> cloned_;  // by value of the program before: whether a clone stands for it
};

size_t Planned(const Rewrite& rewrite) {
  const CompileOptions& options = rewrite.options;
  return PlannedBytes(rewrite.program, rewrite.roots, options.tile_seconds, !options.without.contains(Pass::kFuse));
}

struct Trial {
  Rewrite rewrite;
  size_t planned = 0;
  double seconds = 0;
  bool fits = false;  // by the estimate of the live bytes
};

absl::StatusOr<Trial> Try(const Rewrite& rewrite, size_t limit) {
  const Recomputation choice = ChooseRecomputation(rewrite, limit);
  Trial trial = {.rewrite = rewrite, .seconds = choice.seconds, .fits = choice.fits};
  WEFT_RETURN_IF_ERROR(Cloner(trial.rewrite).Run(choice));
  WEFT_RETURN_IF_ERROR(DropDead(trial.rewrite));
  WEFT_RETURN_IF_ERROR(OrderWrites(trial.rewrite));
  trial.planned = Planned(trial.rewrite);
  return trial;
}

// Tries limit 0, and then `kMaxHalvings` limits by bisection of 0 .. `needed`, the bytes of the plan without clones.
// Returns the trial with the fewest planned bytes. The limits do not depend on the budget. So if the reported minimum
// becomes the budget, compiling succeeds.
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

// Tries lower and lower limits until a plan is within the budget, and returns this trial. If that fails, returns the
// trial of Smallest.
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

// Rewrite x, f(x), ..., g(x) to x, f(x), ..., c = clone of x, g(c), so that the bytes of x are free in between. A clone
// has the original's tiles and random numbers, and so the same bits.
absl::Status Rematerialise(Rewrite& rewrite) {
  const size_t budget = rewrite.options.memory_budget;
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
