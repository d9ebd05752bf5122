// A schedule gives the learning rate of every training step, as a function of the step's number.
//
//   const RateSchedule rate =
//       MakeRateSchedule(*FindRateSchedule("cosine"), {.peak = 1e-3, .warmup = 100, .steps = 2000});
//   rate(0);  // the learning rate of the first step
//
// A new schedule is a function and a row of the table in learning_rate.cc.
#ifndef WEFT_TRAIN_LEARNING_RATE_H_
#define WEFT_TRAIN_LEARNING_RATE_H_

#include <cstdint>
#include <functional>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace weft {

// Returns the learning rate of a step; the first step is 0.
using RateSchedule = std::function<double(int64_t step)>;

struct RateScheduleSettings {
  double peak = 1e-3, floor = 1e-4;  // the highest learning rate, and the learning rate at the end
  int64_t warmup = 100;              // steps of linear warm-up from 0 to `peak`
  int64_t steps = 2000;              // length of the training, warm-up included
};

struct RateScheduleRow {
  absl::string_view name;
  // Returns the learning rate of a step after the warm-up, so `step` is at least `settings.warmup`.
  double (*rate)(const RateScheduleSettings& settings, int64_t step) = nullptr;
};

// Returns all schedules: "cosine" (half a cosine from `peak` to `floor`; Loshchilov and Hutter, "SGDR", 2017, without
// restarts), "linear" (a straight line from `peak` to `floor`) and "constant" (`peak`).
absl::Span<const RateScheduleRow> RateSchedules();
// Returns the schedule of this name, or null.
const RateScheduleRow* FindRateSchedule(absl::string_view name);

// Returns the schedule of `row` after a linear warm-up, in which step s has the rate peak · (s + 1) / (warmup + 1).
// `row` must outlive the schedule.
RateSchedule MakeRateSchedule(const RateScheduleRow& row, const RateScheduleSettings& settings);

}  // namespace weft

#endif  // WEFT_TRAIN_LEARNING_RATE_H_
