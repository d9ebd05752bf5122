// A schedule gives the learning rate of every training step, as a function of the step's number.
//
//   const RateSchedule rate =
//       MakeRateSchedule(*FindRateSchedule("cosine"), {.peak = 1e-3, .warmup = 100, .steps = 2000});
//   rate(0);  // the learning rate of the first step
//   ParseRateSchedule("constant:500,cosine", {.peak = 1e-3, .steps = 2000});  // 500 steps, then half a cosine
//
// A new schedule is a function and a row of the table in learning_rate.cc.
#ifndef WEFT_TRAIN_OPTIMIZE_LEARNING_RATE_H_
#define WEFT_TRAIN_OPTIMIZE_LEARNING_RATE_H_

#include <cstdint>
#include <functional>
#include <limits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace weft {

// Returns the learning rate of a step; the first step is 0.
using RateSchedule = std::function<double(int64_t step)>;

struct RateScheduleSettings {
  double peak = 1e-3, floor = 1e-4;  // the highest learning rate, and the learning rate at the end
  int64_t warmup = 100;              // steps of linear warm-up from 0 to `peak`
  int64_t steps = 2000;              // length of the training, warm-up included
  double decay = 0.2;                // "wsd": number of steps that decay; below 1, a fraction of `steps`
};

struct RateScheduleRow {
  absl::string_view name;
  // Returns the learning rate of a step after the warm-up, so `step` is at least `settings.warmup`.
  double (*rate)(const RateScheduleSettings& settings, int64_t step) = nullptr;
  // Returns the learning rate of a step before `settings.warmup`. Null: peak · (step + 1) / (warmup + 1).
  double (*warm_up)(const RateScheduleSettings& settings, int64_t step) = nullptr;
  bool plateau = false;  // whether the training multiplies the learning rate by Plateau::scale
};

// Returns all schedules. Each begins with a warm-up of `warmup` steps.
//   "cosine"        half a cosine from `peak` to `floor` (Loshchilov and Hutter, "SGDR", 2017, without restarts)
//   "linear"        a straight line from `peak` to `floor`
//   "constant"      `peak`
//   "inverse-sqrt"  peak · sqrt((warmup + 1) / (step + 1)), at least `floor` ("Noam"; Vaswani et al., 2017)
//   "one-cycle"     half a cosine from peak / 25 to `peak`, then half a cosine to `floor` in the last step (Smith and
//                   Topin, 2018, as PyTorch's OneCycleLR)
//   "wsd"           warm-up, stable, decay: `peak`, and in the last `decay` steps a line to `floor` (Hu et al.,
//                   "MiniCPM", 2024)
//   "plateau"       `peak` times a factor that Plateau reduces when a metric stops improving
//   "warmup"        a line from 0 to `peak` over all steps, as the first part of ParseRateSchedule's text
absl::Span<const RateScheduleRow> RateSchedules();
// Returns the schedule of this name, or null.
const RateScheduleRow* FindRateSchedule(absl::string_view name);

// Returns the schedule of `row` after the warm-up. `row` must outlive the schedule.
RateSchedule MakeRateSchedule(const RateScheduleRow& row, const RateScheduleSettings& settings);

// Returns the schedule that `text` describes: a name, or parts NAME:STEPS separated by commas. The last part may lack
// its number of steps, and then has the rest. All parts have the settings' `peak` and `floor`; only the first has a
// warm-up. Returns InvalidArgument if a name is unknown, if one of several parts is "plateau", or if `floor` exceeds
// `peak`.
absl::StatusOr<RateSchedule> ParseRateSchedule(absl::string_view text, const RateScheduleSettings& settings);
// Returns InvalidArgument if the warm-up or the parts of `text` take more steps than the training. Such a schedule
// would end early.
absl::Status CheckLengths(absl::string_view text, const RateScheduleSettings& settings);

// Plateau reduces a learning rate when a metric stops improving, as PyTorch's ReduceLROnPlateau does.
//
//   Plateau plateau;                                 // a copy continues as the original would
//   if (plateau.Observe(validation_loss, {.factor = 0.5, .patience = 3})) ...   // after an evaluation
//   const double rate = schedule(step) * plateau.scale;
struct PlateauSettings {
  double factor = 0.1;      // by which the scale is multiplied; in [0, 1)
  int64_t patience = 10;    // observations in a row without improvement after which the next one reduces the scale
  double threshold = 1e-4;  // a metric improves if it is below best · (1 - threshold); in [0, 1)
  double min_scale = 0;     // the scale never falls below it; in [0, 1]
};
// Returns InvalidArgument if a setting is out of its range.
absl::Status Validate(const PlateauSettings& settings);

struct Plateau {
  double best = std::numeric_limits<double>::infinity();  // the lowest metric so far
  int64_t bad = 0;                                        // observations in a row that did not improve it
  double scale = 1;

  // Takes the metric of one evaluation; lower is better, and NaN does not improve. Returns true if the scale falls.
  bool Observe(double metric, const PlateauSettings& settings);
};

}  // namespace weft

#endif  // WEFT_TRAIN_OPTIMIZE_LEARNING_RATE_H_
