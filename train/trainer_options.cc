#include "weft/train/trainer_options.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "weft/core/status.h"

namespace weft {
namespace {

constexpr std::pair<const char*, DType> kSumNames[] = {{"f32", kF32}, {"bf16", kBF16}};

}  // namespace

Hyperparameters RunOptionRows(TrainerOptions* options) {
  return {
      {"micro-batches",
       "number of parts into which a batch is divided; a step computes one part after another and needs less memory. "
       "1: the whole batch at once",
       &options->micro_batches,
       {.low = 1, .high = 65536, .group = "Training"}},
      ChoiceRow<DType>("gradient-sums",
                       "dtype in which the gradients of several micro-batches are added, and in which they travel "
                       "between ranks; bf16 halves their memory and rounds each sum",
                       kSumNames, &options->sums, {.needs = "micro-batches", .group = "Training"}),
      {"keep", "number of checkpoints to keep, the newest", &options->keep, {.low = 1, .may_change = true}},
      {"ema",
       "decay rate of an exponential moving average of the weights, such as 0.999; 0: no average",
       &options->ema,
       {.low = 0, .high = 0.99999999}},
      {"metric",
       "metric of evaluations that decides which weights are the best; with ema_, that of the averaged weights",
       &options->metric,
       {.choices = {"val_loss", "val_accuracy", "val_f1", "val_pearson", "val_spearman", "ema_val_loss",
                    "ema_val_accuracy", "ema_val_f1", "ema_val_pearson", "ema_val_spearman"},
        .needs = "save-best or patience"}},
      {"save-best", "keep the weights with the best metric in best.safetensors", &options->save_best},
      {"patience",
       "number of evaluations without a better metric after which the training ends; 0: no such end",
       &options->patience,
       {.low = 0, .may_change = true}},
      {"insights",
       "at each evaluation, write histograms of the weights, their last updates and a sample to insights.jsonl, for "
       "weft report",
       &options->insights,
       {.may_change = true, .needs = "eval-every"}},
      {"tensorboard",
       "write an event file for TensorBoard into the run's folder",
       &options->tensorboard,
       {.may_change = true}},
      {"max-skipped",
       "maximum number of steps in a row that are skipped, for example because the loss is NaN; one more ends the "
       "training",
       &options->max_skipped,
       {.low = 0, .may_change = true, .group = "Training"}},
      {"skip-deviations",
       "skip a step whose loss exceeds the running mean by more than this number of standard deviations; 0: no limit",
       &options->skip_deviations,
       {.low = 0, .group = "Training"}},
  };
}

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
