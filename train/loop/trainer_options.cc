#include "weft/train/loop/trainer_options.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "weft/base/status.h"

namespace weft {

absl::Status Validate(const TrainerOptions& options) {
  if (absl::StartsWith(options.metric, "ema_") && options.ema == 0) {
    return InvalidArgument("metric: ", options.metric, " needs averaged weights; set ema, too");
  }
  if (options.sharding != Sharding::kNone && options.ranks.size() == 1) {
    return InvalidArgument(
        "shard: a single process can't divide its state; start several with mpirun or tools/launch, ",
        "or leave this option out");
  }
  if (options.sharding == Sharding::kWeights && options.tensorboard) {
    return InvalidArgument(
        "tensorboard: its histograms need whole weights, but shard=weights divides them among ranks");
  }
  if (options.sharding == Sharding::kWeights && options.insights) {
    return InvalidArgument("insights: they need whole weights, but shard=weights divides them among ranks");
  }
  if (const int ranks = options.ranks.size(); options.micro_batches < ranks) {
    return InvalidArgument("micro-batches: it is ", options.micro_batches, ", but ", ranks,
                           " ranks need at least one micro-batch each; set it to ", ranks,
                           " or more. It does not follow the number of ranks, because it decides the bits of the "
                           "results, and the number of ranks does not");
  }
  const bool evaluates = options.eval_every != 0;
  if (!evaluates && options.patience > 0) return InvalidArgument("patience: it needs evaluations; set eval-every");
  if (!evaluates && options.plateau) {
    return InvalidArgument("schedule: plateau needs evaluations; set eval-every");
  }
  if (!evaluates && options.save_best) return InvalidArgument("save-best: it needs evaluations; set eval-every");
  return absl::OkStatus();
}

std::string IdleTime(int64_t micro_batches, int64_t ranks) {
  const int64_t more = micro_batches % ranks, most = micro_batches / ranks + 1;  // the first `more` ranks have `most`
  if (more == 0) return "";
  const double busy = static_cast<double>(micro_batches) / static_cast<double>(most * ranks);
  return absl::StrFormat("%s %d of %d micro-batches, the others %d: %.0f%% of the ranks' time is idle",
                         more == 1 ? "rank 0 has" : absl::StrCat("ranks 0 to ", more - 1, " have"), most, micro_batches,
                         most - 1, 100 * (1 - busy));
}

}  // namespace weft
